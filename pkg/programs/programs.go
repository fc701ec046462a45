// Package programs is an event source about files of plugins: plugins that cannot be started, and makers of lock files
// for which plugins poll.
package programs

import (
	"context"
	"path"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/source"
)

const (
	pace = 200 * time.Millisecond
	// dirsMax bounds directories; a node has one or two.
	dirsMax = 8
)

// Node examines the node for a Source.
type Node struct {
	// Dirs returns plugins' directories, none if unknown, a process that sees them, and whether the runtime runs loopback.
	Dirs func(context.Context) (pid int, dirs []string, loopback bool)
	// Faults returns the programs that cannot be started, in directories as pid sees them.
	Faults func(pid int, dirs, names []string) []event.Program
	// LockFile looks at a file as pid sees it; nil if impossible.
	LockFile func(pid int, path string) *event.LockFile
}

// Source is run once. Pass other sources' events to Tell.
type Source struct {
	node          Node
	changed, wake chan struct{}       // networks or runtime changed; a call began
	locks         chan *event.Missing // that plugins and agents poll for
	patience      procfs.Patience     // a lock file may be on a mount that hangs

	mu    sync.Mutex
	pid   int // starter of the latest plugin
	dirs  []string
	names []string
}

// New returns a source without directories and plugins.
func New(n Node) *Source {
	return &Source{
		node: n, changed: make(chan struct{}, 1), wake: make(chan struct{}, 1), locks: make(chan *event.Missing, 8),
		patience: procfs.Patience{Each: 500 * time.Millisecond, Most: 4},
	}
}

// Name is "programs".
func (*Source) Name() string { return "programs" }

// Stats is empty.
func (*Source) Stats() source.Stats { return source.Stats{} }

// Tell receives another source's event without blocking.
func (s *Source) Tell(e event.Event) {
	wake := s.wake
	switch b := e.Body.(type) {
	case *event.Networks:
		wake = s.changed
		s.mu.Lock()
		s.names = plugins(b.Networks)
		s.mu.Unlock()
	case *event.Registered, *event.Runtime:
		wake = s.changed
	case *event.Exec:
		if !b.Root || !b.InPath || b.Call == nil || !b.Caller.Anchored() {
			return
		}
		s.found(int(b.ParentPID), path.Dir(b.File))
	case *event.Missing:
		if b.Error == "EEXIST" && path.IsAbs(b.Path) {
			select {
			case s.locks <- b:
			default: // it is reported again
			}
		}
		return
	default:
		return
	}
	select {
	case wake <- struct{}{}:
	default:
	}
}

func (s *Source) found(pid int, dirs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, dir := range dirs {
		if path.IsAbs(dir) && !slices.Contains(s.dirs, dir) && len(s.dirs) < dirsMax {
			s.dirs = append(s.dirs, dir)
		}
	}
	if pid > 0 {
		s.pid = pid
	}
}

func plugins(networks []event.Network) (names []string) {
	for _, n := range networks {
		for _, p := range n.Plugins {
			for _, name := range []string{p.Type, p.IPAM} {
				if name != "" && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// Run reports until ctx ends; on Windows, where names do not identify files, nothing.
func (s *Source) Run(ctx context.Context, sink event.Sink) error {
	if runtime.GOOS == "windows" {
		<-ctx.Done()
		return nil
	}
	var known *event.Programs
	var last event.Missing
	loopback, again := false, false
	ask := func() (answered bool) {
		pid, dirs, needs := s.node.Dirs(ctx)
		s.found(pid, dirs...)
		if answered = len(dirs) > 0; answered {
			loopback = needs
		}
		return answered
	}
	for {
		select {
		case <-s.changed:
			again = !ask()
		case <-s.wake:
			if again {
				again = false
				ask()
			}
		case b := <-s.locks:
			if b.Process != last.Process || b.Path != last.Path {
				last = *b
				s.lockFile(b, sink)
			}
			continue
		case <-ctx.Done():
			return nil
		}
		s.mu.Lock()
		pid, dirs, names := s.pid, slices.Clone(s.dirs), slices.Clone(s.names)
		s.mu.Unlock()
		if loopback && !slices.Contains(names, "loopback") {
			names = append(names, "loopback")
		}
		if len(dirs) == 0 { // unknown, and no plugin has run
			continue
		}
		now := &event.Programs{Looked: names, Faults: s.node.Faults(pid, dirs, names), Loopback: loopback}
		if !reflect.DeepEqual(now, known) {
			known = now
			sink(source.Now(now))
		}
		select {
		case <-time.After(pace):
		case <-s.changed:
			select {
			case s.changed <- struct{}{}:
			default:
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// lockFile looks as the process that polls, which may have its own files and PIDs.
func (s *Source) lockFile(b *event.Missing, sink event.Sink) {
	if b.PID == 0 || s.node.LockFile == nil {
		return
	}
	found, err := procfs.Within(&s.patience, func() (*event.LockFile, error) {
		return s.node.LockFile(int(b.PID), b.Path), nil
	})
	if err == nil && found != nil {
		sink(source.Now(found))
	}
}
