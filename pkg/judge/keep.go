package judge

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
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
	// ParentBased keeps what is below a sampled parent, and only by Keep what is below an unsampled one.
	ParentBased bool `json:"-"`
}

// reasons also returns the tracestate of a kept operation.
func (s Sampling) reasons(op *model.Operation, j *Judgement) (reasons []Reason, state string) {
	if routine(op) {
		return []Reason{NoSandbox}, ""
	}
	is := map[Reason]bool{Partial: len(op.Partial) > 0, Slow: len(j.Slow)+len(j.SlowAgents)+len(j.SlowLocks) > 0}
	below, root := false, false // a sampled parent; a call without an unsampled one
	for _, call := range op.Calls {
		is[Slow] = is[Slow] || j.Calls[call].Slow > 0
		is[Hung] = is[Hung] || call.Hung
		is[Failed] = is[Failed] || j.Calls[call].Failure != ""
		is[Unusual] = is[Unusual] || j.Slower(call)
		parent := w3c.Parse(call.Trace)
		below, root = below || parent.Recorded(), root || !parent.Unsampled()
	}
	for _, rule := range []Reason{Slow, Failed, Partial, Hung, Unusual} {
		if is[rule] && slices.Contains(s.Keep, rule) {
			reasons = append(reasons, rule)
		}
	}
	random, least := randomness(op.ContainerID), threshold(s.ratio(op))
	switch {
	case len(reasons) > 0:
		return reasons, s.state(0, random, below)
	case op.ContainerID == "":
		return []Reason{NoSandbox}, ""
	case s.All, s.ParentBased && below:
		return []Reason{Sampled}, ""
	case (root || !s.ParentBased) && random >= least:
		return []Reason{Sampled}, s.state(least, random, below)
	}
	return []Reason{Unsampled}, ""
}

// state is a kept operation's tracestate, by which a backend can count all operations; empty if a sampled parent
// decided, or none is left out.
func (s Sampling) state(threshold, random uint64, below bool) string {
	if s.All || s.ParentBased && below || !below && s.Ratio == 1 && len(s.Namespaces)+len(s.Annotations) == 0 {
		return ""
	}
	th := strings.TrimRight(fmt.Sprintf("%014x", threshold), "0")
	return fmt.Sprintf("ot=th:%s;rv:%014x", cmp.Or(th, "0"), random)
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

// randomBits is the length of a trace's randomness (OpenTelemetry, trace/tracestate-probability-sampling).
const randomBits = 56

// randomness is of a sandbox ID, the same on every node and version: all its ordinary operations are kept, or none.
func randomness(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return ^(binary.BigEndian.Uint64(sum[:8]) >> (64 - randomBits)) & (1<<randomBits - 1)
}

// threshold is the least randomness that a ratio keeps.
func threshold(ratio float64) uint64 {
	return 1<<randomBits - uint64(math.Round(math.Ldexp(ratio, randomBits)))
}

// Limiter bounds a storm: beyond a number per second, operations are reduced to their calls before any is dropped.
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
