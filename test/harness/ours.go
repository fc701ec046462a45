package harness

import (
	"crypto/rand"

	"github.com/cniscope/cniscope/pkg/event"
)

// Ours tells the plugins of one test from all others on the machine: they are those of its container, and what they
// start. It is not safe for concurrent use.
type Ours struct {
	container string
	processes map[event.Process]bool
}

// Container returns a random CNI_CONTAINERID.
func Container() string { return "cniscope-test-" + rand.Text() }

// NewOurs returns an Ours for the plugins of a container.
func NewOurs(container string) *Ours {
	return &Ours{container: container, processes: map[event.Process]bool{}}
}

// Has takes the next event of an observer, in order, and reports whether it is of a process of the test, or of none.
func (o *Ours) Has(e event.Event) bool {
	of := e.Body.Doer()
	switch b := e.Body.(type) {
	case *event.Exec:
		if o.processes[b.Parent] || b.Root && b.Call != nil && b.Call.ContainerID == o.container {
			o.processes[b.Process] = true
		}
	case *event.Fork:
		if o.processes[b.Parent] {
			o.processes[b.Process] = true
		}
	case *event.Agent:
		of = b.Process
	case *event.Lost:
		of = b.Process
	}
	return of == "" || o.processes[of]
}

// Mine reports whether a process is the test's own.
func (o *Ours) Mine(p event.Process) bool { return o.processes[p] }

// Add makes a process that is no plugin's the test's own: an agent that its plugins call.
func (o *Ours) Add(p event.Process) { o.processes[p] = true }
