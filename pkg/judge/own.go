package judge

import (
	"fmt"
	"strings"

	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// own is says, the sentence of a verdict, for who may see the pods of one namespace only: it names no pod of another
// one. That something of it was perhaps done for such a pod is perhapsAnothers.
func (e *evidence) own(says string) string {
	for _, w := range e.waits {
		lock, is := w.what.(*timeline.Wait)
		if is && lock.Blame != nil && lock.Blame.Pod.Name != "" && lock.Blame.Pod.Namespace != e.namespace {
			says = strings.ReplaceAll(says, forPod(lock.Blame), " for another pod")
		}
	}
	return says
}

// perhapsAnothers is the sentence of a finding that is not certain: what an agent did may have been for a pod of
// another namespace, and then so are the paths and programs.
func (e *evidence) perhapsAnothers(f *finding) string {
	return fmt.Sprintf("%s of %s in what an agent did, perhaps for another pod", text.Round(f.time), text.Round(e.Took))
}

func forPod(b *timeline.Blame) string { return " for pod " + b.Pod.Namespace + "/" + b.Pod.Name }
