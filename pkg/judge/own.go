package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// own returns the sentence says for users who may see only one namespace, without the names of other pods.
func (e *evidence) own(says string) string {
	var others []string
	for _, w := range e.waits {
		lock, is := w.what.(*model.Wait)
		if is && lock.Blame != nil && lock.Blame.Pod.Name != "" && lock.Blame.Pod.Namespace != e.namespace {
			others = append(others, forPod(lock.Blame))
		}
	}
	// Longest first: db is a prefix of db-backup.
	slices.SortFunc(others, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, other := range others {
		says = strings.ReplaceAll(says, other, " for another pod")
	}
	return says
}

// perhapsAnothers replaces an uncertain finding: its paths and programs may belong to another namespace.
func (e *evidence) perhapsAnothers(f *finding) string {
	return fmt.Sprintf("%s of %s: an agent worked, possibly for another pod", text.Round(f.time), text.Round(e.Took))
}

func forPod(b *model.Blame) string { return " for pod " + b.Pod.Namespace + "/" + b.Pod.Name }
