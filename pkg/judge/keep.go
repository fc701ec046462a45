package judge

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/w3c"
)

// Sampling decides which operations are kept.
type Sampling struct {
	// Ratio of ordinary operations to keep, 0 to 1.
	Ratio float64
	// Namespaces are tried before Ratio; the first match counts.
	Namespaces []NamespaceRule
	// Annotations are globs (path.Match) of namespaces whose Annotation counts.
	Annotations []string
	// PerSecond bounds whole operations (Limiter); 0 is no limit.
	PerSecond int
	// All keeps every operation of a sandbox.
	All bool
	// Keep are reasons that override Ratio.
	Keep []Reason
}

func (s Sampling) reasons(op *model.Operation, j *Judgement) (reasons []Reason) {
	if routine(op) {
		return []Reason{NoSandbox}
	}
	is := map[Reason]bool{Partial: len(op.Partial) > 0, Slow: len(j.Slow)+len(j.SlowAgents)+len(j.SlowLocks) > 0}
	sampled := false
	for _, call := range op.Calls {
		is[Slow] = is[Slow] || j.Calls[call].Slow > 0
		is[Hung] = is[Hung] || call.Hung
		is[Failed] = is[Failed] || j.Calls[call].Failure != ""
		is[Unusual] = is[Unusual] || j.Slower(call)
		sampled = sampled || !w3c.Parse(call.Trace).Unsampled()
	}
	for _, rule := range []Reason{Slow, Failed, Partial, Hung, Unusual} {
		if is[rule] && slices.Contains(s.Keep, rule) {
			reasons = append(reasons, rule)
		}
	}
	switch {
	case len(reasons) > 0:
		return reasons
	case op.ContainerID == "":
		return []Reason{NoSandbox}
	case s.All, sampled && share(op.ContainerID) < s.ratio(op):
		return []Reason{Sampled}
	}
	return []Reason{Unsampled}
}

// routine reports whether an operation is a periodic query about no pod, never kept.
func routine(op *model.Operation) bool {
	return !slices.ContainsFunc(op.Calls, func(c *model.Call) bool {
		return c.Command != "STATUS" && c.Command != "VERSION"
	})
}

// NamespaceRule is the ratio of matching namespaces.
type NamespaceRule struct {
	// Pattern is a glob (path.Match).
	Pattern string
	Ratio   float64
}

// Annotation sets a pod's ratio: "always", "never", or a share. NRI delivers it, so it is unknown if the network
// never came up. It counts only in Sampling.Annotations.
const Annotation = "cniscope.dev/sample"

// ratio is by annotation, else namespace, else the node's.
func (s Sampling) ratio(op *model.Operation) float64 {
	if op.Sandbox != nil && s.mayChoose(op.Pod.Namespace) {
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
	for _, rule := range s.Namespaces {
		if ok, err := path.Match(rule.Pattern, op.Pod.Namespace); ok && err == nil {
			return rule.Ratio
		}
	}
	return s.Ratio
}

func (s Sampling) mayChoose(namespace string) bool {
	return slices.ContainsFunc(s.Annotations, func(pattern string) bool {
		ok, err := path.Match(pattern, namespace)
		return ok && err == nil
	})
}

// share maps a sandbox ID to [0, 1), the same on every node and version: all its ordinary operations are kept, or
// none.
func share(id string) float64 {
	sum := sha256.Sum256([]byte(id))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / math.Exp2(53)
}

// Limiter bounds a storm: beyond a number per second, operations are reduced to their calls before any is dropped. It
// reads no clock.
type Limiter struct {
	whole []int64 // oldest first
}

// Whole reports whether an operation that ended at now (monotonic ns) may be kept whole.
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
