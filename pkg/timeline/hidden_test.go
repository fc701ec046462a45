package timeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// An agent whose callers are invisible.
func (s *story) hidden(at int64, process string) *story {
	return s.at(at, &event.Agent{Process: event.Process(process), PID: 7, Name: process, Hidden: true})
}

func mentioning(containers ...string) func(*event.Exec) {
	return func(e *event.Exec) { e.Mentions = containers }
}

// What agents ran for closed operations, and the evidence.
func (s *story) attributed() string {
	var all []string
	for _, op := range s.closed {
		for _, call := range op.Calls {
			for _, run := range call.Runs {
				run.Walk(func(im *model.Image) {
					if im.Attribution == nil {
						return
					}
					said := fmt.Sprintf("%s: %s %d-%d %s by %s", op.ContainerID, im.Name, im.Start/ms, im.End/ms,
						im.Attribution.Evidence, im.By.Name)
					if n := len(im.Attribution.Others); n > 0 {
						said += fmt.Sprintf(" or %d others", n)
					}
					all = append(all, said)
				})
			}
		}
	}
	return strings.Join(all, "; ")
}

func TestWhatAnAgentRunsThatNobodySeesCalled(t *testing.T) {
	two := func(s *story) *story {
		return s.plugin(0, "a", "ADD", "antrea").plugin(10, "b", "ADD", "antrea", container("c2"))
	}
	end := func(s *story) { s.exit(100, "a").exit(110, "b").tick(2000) }
	stories{
		"what it names is certain": {func(s *story) {
			end(two(s.hidden(0, "agent")).image(20, "p", "agent", "powershell", mentioning("c2")).exit(60, "p"))
		}, "c2: powershell 20-60 certain by agent"},
		"without a name it is a candidate of all that are under way": {func(s *story) {
			end(two(s.hidden(0, "agent")).image(20, "p", "agent", "powershell").exit(60, "p"))
		}, "c1: powershell 20-60 candidate by agent or 1 others"},
		"two names are none": {func(s *story) {
			end(two(s.hidden(0, "agent")).image(20, "p", "agent", "powershell", mentioning("c1", "c2")).exit(60, "p"))
		}, "c1: powershell 20-60 candidate by agent or 1 others"},
		"a name of a call that the runtime did not begin is no second one": {func(s *story) {
			end(s.hidden(0, "agent").plugin(0, "a", "ADD", "antrea", container("c2"), startedBy(event.CallerRootless)).
				plugin(10, "b", "ADD", "antrea").image(20, "p", "agent", "powershell", mentioning("c1", "c2")).exit(60, "p"))
		}, "c1: powershell 20-60 candidate by agent"},
		"but the only one is": {func(s *story) {
			end(s.hidden(0, "agent").plugin(0, "a", "ADD", "antrea", startedBy(event.CallerRootless)).
				plugin(10, "b", "ADD", "antrea", container("c2")).image(20, "p", "agent", "powershell", mentioning("c1")).exit(60, "p"))
		}, "c1: powershell 20-60 certain by agent"},
		"and without a name it may be for such a call, too": {func(s *story) {
			end(s.hidden(0, "agent").plugin(0, "a", "ADD", "antrea").
				plugin(10, "b", "ADD", "antrea", container("c2"), startedBy(event.CallerRootless)).
				image(20, "p", "agent", "powershell").exit(60, "p"))
		}, "c1: powershell 20-60 candidate by agent or 1 others"},
		"it is not forgotten between two pods": {func(s *story) {
			s.hidden(0, "agent").plugin(0, "o", "ADD", "antrea", container("c0")).exit(5, "o").tick(2000)
			s.plugin(3000, "a", "ADD", "antrea").image(3010, "p", "agent", "powershell", mentioning("c1")).exit(3020, "p").
				exit(3030, "a").tick(5000)
		}, "c1: powershell 3010-3020 certain by agent"},
		"of another sandbox's call it is none": {func(s *story) {
			end(two(s.hidden(0, "agent")).image(20, "p", "agent", "powershell", mentioning("c9")).exit(60, "p"))
		}, ""},
		"when no plugin runs it is nobody's": {func(s *story) {
			end(two(s.hidden(0, "agent")).exit(90, "b").exit(91, "a").image(95, "p", "agent", "powershell").exit(97, "p"))
		}, ""},
		"who is over runs nothing any more": {func(s *story) {
			end(two(s.hidden(0, "agent")).at(15, &event.Agent{Process: "agent", Over: true}).
				image(20, "p", "agent", "powershell", mentioning("c1")).exit(60, "p"))
		}, ""},
		"an agent that is seen called has its connections": {func(s *story) {
			end(two(s.at(0, &event.Agent{Process: "agent", Name: "agent"})).
				image(20, "p", "agent", "powershell", mentioning("c1")).exit(60, "p"))
		}, ""},
	}.each(t, tell, func(s *story) string {
		s.over()
		return s.attributed()
	})
}
