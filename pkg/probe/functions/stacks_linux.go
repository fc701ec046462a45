package functions

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/builds"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	programsMax = 64
	stacksMax   = 1024
	placesMax   = 4096
	framesMax   = 8
	// Naming may last a tenth of the time, or a second at once.
	share = 10
	spare = time.Second
)

// Stacks names running programs' stacks, for one goroutine.
type Stacks struct {
	mu       sync.Mutex // a hung read may continue
	programs map[builds.Identity]*Program
	stacks   map[known][]event.Frame
	places   map[address][]event.Frame
	sizes    map[address]int64         // of frames
	images   map[Image]builds.Identity // zero: no names
	patience procfs.Patience
	left     time.Duration // for naming, at
	at       time.Time
	until    int64
}

// looksShare leaves 19 of 20 parts to events.
const looksShare = 19

// Free allows a look.
func (s *Stacks) Free(now int64) bool { return now >= s.until }

// Spent counts a look.
func (s *Stacks) Spent(began int64) {
	now := clock.Monotonic()
	s.until = max(s.until, now) + looksShare*(now-began)
}

type address struct {
	*Program
	at uint64 // or offset
}

type known struct {
	builds.Identity
	addresses [32]uint64
}

// Image is a process's program, mount namespace, and addresses of code.
type Image struct {
	Process       event.Process // empty: not remembered
	Execs, Mounts uint32
	Start, End    uint64
}

// Stack is the user stack of a process.
type Stack struct {
	Image
	PID uint32
	// Addresses are the innermost first.
	Addresses []uint64
}

// NewStacks returns an empty cache.
func NewStacks() *Stacks {
	return &Stacks{
		programs: map[builds.Identity]*Program{}, stacks: map[known][]event.Frame{},
		images: map[Image]builds.Identity{}, places: map[address][]event.Frame{}, sizes: map[address]int64{},
		patience: procfs.Patience{Each: 500 * time.Millisecond, Most: 4}, // 1 ms is usual
	}
}

// Name returns a stack's calls outside the standard library, innermost first, up to 8. It returns none if the process
// or its program is gone, has no names, or naming lasted too long lately.
func (s *Stacks) Name(of Stack) []event.Frame {
	if of.Mounts == 0 || of.PID == 0 {
		return nil
	}
	if id, ok := lookUp(s, s.images, of.Image); ok {
		if id == (builds.Identity{}) {
			return nil
		}
		if frames, ok := lookUp(s, s.stacks, of.in(id)); ok {
			return frames
		}
	}
	return spend(s, func() []event.Frame { return s.name(of) })
}

func spend[T any](s *Stacks, naming func() T) (named T) {
	now := time.Now()
	s.left, s.at = min(spare, s.left+now.Sub(s.at)/share), now
	if s.left < 0 {
		return named
	}
	defer func() { s.left -= time.Since(now) }()
	named, _ = procfs.Within(&s.patience, func() (T, error) { return naming(), nil })
	return named
}

func (s *Stacks) name(of Stack) []event.Frame {
	info, err := os.Stat(procfs.Runs(int(of.PID)))
	if err != nil {
		return nil
	}
	// afterwards: the process may have entered a container
	if mounts, err := procfs.Namespace(int(of.PID), "mnt"); err != nil || mounts != of.Mounts {
		return nil
	}
	key := of.in(builds.IdentityOf(info))
	p, opened := lookUp(s, s.programs, key.Identity)
	frames, named := lookUp(s, s.stacks, key)
	if !opened || p != nil && !named {
		f, err := builds.Running(int(of.PID))
		if err != nil {
			return nil
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || builds.IdentityOf(info) != key.Identity {
			return nil
		}
		if p = s.program(f, key.Identity); p != nil && p.Size() == of.End-of.Start && !named {
			frames = s.callers(p, f, key.addresses[:min(len(of.Addresses), len(key.addresses))])
			store(s, s.stacks, stacksMax, key, frames)
		}
	}
	if p != nil && p.Size() != of.End-of.Start {
		return nil
	}
	if p == nil {
		frames, key.Identity = nil, builds.Identity{}
	}
	if of.Process != "" {
		store(s, s.images, stacksMax, of.Image, key.Identity)
	}
	return frames
}

func (of Stack) in(id builds.Identity) known {
	key := known{Identity: id}
	for i, a := range of.Addresses[:min(len(of.Addresses), len(key.addresses))] {
		key.addresses[i] = a - of.Start
	}
	return key
}

func (s *Stacks) program(f io.ReaderAt, id builds.Identity) *Program {
	p, ok := lookUp(s, s.programs, id)
	if !ok {
		p, _ = Open(f)
		store(s, s.programs, programsMax, id, p)
	}
	return p
}

func lookUp[K comparable, V any](s *Stacks, in map[K]V, key K) (V, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := in[key]
	return v, ok
}

func store[K comparable, V any](s *Stacks, in map[K]V, most int, key K, v V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(in) >= most {
		clear(in)
	}
	in[key] = v
}

func (s *Stacks) callers(p *Program, f io.ReaderAt, stack []uint64) (all []event.Frame) {
	f = &bounded{f, readsMax}
	sleeps := false
	for i, offset := range stack {
		if i > 0 { // return address, behind the call
			offset--
		}
		at := address{p, offset}
		frames, known := lookUp(s, s.places, at)
		if !known {
			if frames = p.Frames(f, offset); len(frames) > 0 {
				store(s, s.places, placesMax, at, frames)
			}
		}
		for _, frame := range frames {
			if len(all) == framesMax {
				return all
			}
			if standard(frame.Function) {
				sleeps = frame.Function == "time.Sleep"
			} else {
				frame.Sleeps = sleeps && len(all) == 0
				frame.Function = text.Clean(frame.Function, text.Bound)
				frame.File = text.Clean(frame.File, text.Bound)
				all = append(all, frame)
			}
		}
	}
	return all
}

// standard reports whether a function belongs to the standard library or its extensions. Paths of others begin with a
// host or "main".
func standard(function string) bool {
	path, _, nested := strings.Cut(function, "/")
	if !nested {
		path, _, _ = strings.Cut(function, ".")
	}
	if strings.Contains(path, ".") {
		return strings.HasPrefix(function, "golang.org/x/")
	}
	switch path {
	case "archive", "bufio", "bytes", "cmp", "compress", "container", "context", "crypto", "database", "debug", "embed",
		"encoding", "errors", "expvar", "flag", "fmt", "go", "hash", "html", "image", "index", "internal", "io", "iter",
		"log", "maps", "math", "mime", "net", "os", "path", "plugin", "reflect", "regexp", "runtime", "slices", "sort",
		"strconv", "strings", "structs", "sync", "syscall", "testing", "text", "time", "unicode", "unique", "unsafe",
		"vendor", "weak":
		return true
	}
	return !strings.Contains(function, ".") // assembly
}
