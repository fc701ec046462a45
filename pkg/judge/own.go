package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// own returns says, the sentence of a verdict, for whoever may see the pods of one namespace only: it names no pod of
// another. Where what it tells was perhaps done for such a pod, perhapsAnothers is said instead.
func (e *evidence) own(says string) string {
	var others []string
	for _, w := range e.waits {
		lock, is := w.what.(*model.Wait)
		if is && lock.Blame != nil && lock.Blame.Pod.Name != "" && lock.Blame.Pod.Namespace != e.namespace {
			others = append(others, forPod(lock.Blame))
		}
	}
	// The longest first: db begins what db-backup is called, of which "-backup" would stay.
	slices.SortFunc(others, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, other := range others {
		says = strings.ReplaceAll(says, other, " for another pod")
	}
	return says
}

// perhapsAnothers is the sentence of a finding that is not certain: what an agent did may have been for a pod of
// another namespace, and then so are the paths and programs.
func (e *evidence) perhapsAnothers(f *finding) string {
	return fmt.Sprintf("%s of %s in what an agent did, perhaps for another pod", text.Round(f.time), text.Round(e.Took))
}

func forPod(b *model.Blame) string { return " for pod " + b.Pod.Namespace + "/" + b.Pod.Name }
