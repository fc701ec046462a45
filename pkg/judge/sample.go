package judge

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// NamespaceRule gives the pods of some namespaces a ratio of their own.
type NamespaceRule struct {
	// Pattern is a glob (path.Match) on the pod's namespace.
	Pattern string
	Ratio   float64
}

// Annotation is what a pod says of its own sampling: "always", "never", or a share. NRI
// tells it, so it is not known of a pod whose network never came up. It counts only where
// the operator lets it (Options.Annotations).
const Annotation = "cniscope.dev/sample"

// ratio is the share that an ordinary operation is subject to: by the pod's word, else by
// its namespace, else the node's.
func (o Options) ratio(op *timeline.Operation) float64 {
	if op.Sandbox != nil && o.mayChoose(op.Pod.Namespace) {
		switch word := op.Sandbox.Annotations[Annotation]; word {
		case "always":
			return 1
		case "never":
			return 0
		default:
			if r, err := strconv.ParseFloat(word, 64); err == nil && r >= 0 && r <= 1 {
				return r
			}
		}
	}
	for _, rule := range o.Namespaces {
		if ok, err := path.Match(rule.Pattern, op.Pod.Namespace); ok && err == nil {
			return rule.Ratio
		}
	}
	return o.Ratio
}

func (o Options) mayChoose(namespace string) bool {
	return slices.ContainsFunc(o.Annotations, func(pattern string) bool {
		ok, err := path.Match(pattern, namespace)
		return ok && err == nil
	})
}

// share maps a sandbox id to [0, 1), the same on every node and in every version: all
// operations of a sandbox are kept, or none.
func share(id string) float64 {
	sum := sha256.Sum256([]byte(id))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / math.Exp2(53)
}

// Limiter bounds what a storm costs: above a number of operations in any second a kept one
// shrinks to its calls, before anything is lost. It is state between judgements, not a
// clock: the time is handed in.
type Limiter struct {
	whole []int64 // when the last ones were let through whole, oldest first
}

// Whole tells whether an operation that ended at now (monotonic ns) may be kept whole.
func (l *Limiter) Whole(now int64, perSecond int) bool {
	if perSecond <= 0 {
		return true
	}
	l.whole = slices.DeleteFunc(l.whole, func(at int64) bool { return now-at >= int64(time.Second) })
	if len(l.whole) >= perSecond {
		return false
	}
	l.whole = append(l.whole, now)
	return true
}
