// Package builds tells one build of a CNI plugin from another by a fingerprint of its file: its size, and what is at
// its beginning, middle and end. There compilers and linkers put what identifies a build (notes of ELF, Go's build
// id, headers of PE, symbols). A copy of the same file has the same fingerprint, on any node.
package builds

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

const (
	// part is how much is read of the beginning, the middle and the end of a file.
	part = 64 << 10
	// filesMax is how many files are remembered, waiting how many wait to be looked at. A node has a dozen.
	filesMax = 256
	waiting  = 64
	// abreast is how many are looked at side by side: so many have to hang before one that does not is waited for.
	abreast = 16
)

// Known are the builds of a node's plugins. A file is read once, and again when it has changed, under Run alone: whoever
// asks waits for no file.
type Known struct {
	mu      sync.Mutex
	files   map[string]file
	awaited map[string]bool // that are in looks, or looked at
	looks   chan look
	at      func(look, file) (file, error)
}

type file struct {
	id       identity
	size     int64
	modified time.Time
	build    string
}

// look is a file to be looked at, as a process saw it that was forked at started, in monotonic nanoseconds.
type look struct {
	name    string
	pid     int
	started int64
}

// New returns one that knows nothing yet.
func New() *Known {
	return &Known{files: map[string]file{}, awaited: map[string]bool{}, looks: make(chan look, waiting), at: look.at}
}

// Tell says in an event that a plugin began which build of it that is, as far as is known from the last time that it
// was looked at, and has Run look at it again. An event of another kind stays as it is.
func (b *Known) Tell(e event.Event) {
	exec, ok := e.Body.(*event.Exec)
	if !ok || !exec.InPath || exec.Build != "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	exec.Build = b.files[exec.File].build
	if b.awaited[exec.File] {
		return
	}
	select {
	case b.looks <- look{exec.File, int(exec.PID), exec.Started}:
		b.awaited[exec.File] = true
	default: // the next one that begins asks again
	}
}

// Run looks at files until ctx ends. Of a file system that does not answer each file holds up itself alone, also
// after Run has returned; what was known of it stays.
func (b *Known) Run(ctx context.Context) {
	free := make(chan struct{}, abreast)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case l := <-b.looks:
			go func() {
				b.look(l)
				<-free
			}()
		case <-ctx.Done():
			return
		}
	}
}

// look looks at a file. What was known stays where it cannot be looked at: the process may be gone.
func (b *Known) look(l look) {
	b.mu.Lock()
	before := b.files[l.name]
	b.mu.Unlock()
	now, err := b.at(l, before)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.awaited, l.name)
	if err != nil {
		return
	}
	if len(b.files) >= filesMax {
		clear(b.files)
	}
	b.files[l.name] = now
}

// at returns what a file is now, where it was before.
func (l look) at(before file) (file, error) {
	if l.runsStill(before) {
		return before, nil
	}
	f, err := l.open()
	if err != nil {
		return file{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return file{}, err
	}
	now := file{identityOf(info), info.Size(), info.ModTime(), before.build}
	if before.build == "" || before.size != now.size || !before.modified.Equal(now.modified) {
		now.build, err = Of(f, now.size)
	}
	return now, err
}

// Of returns the fingerprint of a file.
func Of(f io.ReaderAt, size int64) (string, error) {
	sum := sha256.New()
	_, _ = io.WriteString(sum, strconv.FormatInt(size, 10)+"\n")
	for _, from := range []int64{0, (size - part) / 2, size - part} {
		if _, err := io.Copy(sum, io.NewSectionReader(f, max(from, 0), part)); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
