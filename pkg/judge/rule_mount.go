package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/model"
)

// CauseMount is the cause of slowMount.
const CauseMount Cause = "mount"

func slowMount(e *evidence) *finding {
	sum, longest, n := e.waited(func(w *wait) bool { _, is := w.what.(*model.Mount); return is })
	if longest == nil {
		return nil
	}
	return &finding{time: sum, kind: SystemCalls, candidate: longest.candidate, Verdict: Verdict{
		Cause:  CauseMount,
		Says:   fmt.Sprintf("%s waited for %s%s", longest.part.In, Mounting(longest.what.(*model.Mount)), times(n)),
		Remedy: CauseMount.remedy(),
	}}
}

// Mounting describes a mount: "mount of /run/netns/a (bind, from /proc/7/ns/net)".
func Mounting(m *model.Mount) string {
	said, more := "mount of ", slices.Clone(m.Flags)
	if m.Name == "umount2" {
		said = "unmount of "
	}
	if m.FSType != "" {
		more = append([]string{m.FSType}, more...)
	}
	if m.Source != "" && m.Source != "none" {
		more = append(more, "from "+m.Source)
	}
	if m.Error != "" {
		more = append(more, "failed with "+m.Error)
	}
	said += m.Target
	if len(more) > 0 {
		said += " (" + strings.Join(more, ", ") + ")"
	}
	return said
}

func mountPart(s *span, what model.What) Part {
	return Part{Kind: SystemCalls, Name: what.(*model.Mount).Name, In: cmp.Or(s.waiter(), s.image.Name)}
}
