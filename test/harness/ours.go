package harness

import (
	"crypto/rand"

	"github.com/cniscope/cniscope/pkg/event"
)

// Ours separates the processes of one test from others on the machine: the plugins of its container, and their
// children. It is not safe for concurrent use.
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

// Has takes the next event, in order. It reports whether the event is of a process of the test, or of no process.
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

// Mine reports whether a process belongs to the test.
func (o *Ours) Mine(p event.Process) bool { return o.processes[p] }

// Add adds a process that is not a plugin, such as an agent.
func (o *Ours) Add(p event.Process) { o.processes[p] = true }
