package probe

import (
	"io/fs"
	"maps"
	"os"
	"syscall"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/builds"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// publishers finds programs with a builds.ThreadContext. BPF knows a file only by inode and size, so of differing files
// with the same it reads neither: a tenant can choose both.
type publishers struct {
	store    func(program kernel.LifePublisher, offset *int64) error
	looked   map[builds.Identity]bool
	known    map[kernel.LifePublisher]place
	patience procfs.Patience
}

type place struct {
	offset    *int64
	ambiguous bool
}

const lookedMax = 256

func newPublishers(store func(kernel.LifePublisher, *int64) error) *publishers {
	return &publishers{
		store: store, looked: map[builds.Identity]bool{}, known: map[kernel.LifePublisher]place{},
		patience: procfs.Patience{Each: 100 * time.Millisecond, Most: 4},
	}
}

// look reads each program's file once.
func (p *publishers) look(pid uint32) {
	info, err := procfs.Within(&p.patience, func() (fs.FileInfo, error) { return os.Stat(procfs.Runs(int(pid))) })
	if err != nil || pid == 0 || p.looked[builds.IdentityOf(info)] {
		return
	}
	offset, err := procfs.Within(&p.patience, func() (*int64, error) { return threadContext(int(pid), info) })
	if err != nil {
		return
	}
	if len(p.looked) >= lookedMax {
		clear(p.looked)
		maps.DeleteFunc(p.known, func(_ kernel.LifePublisher, at place) bool { return at == place{} })
	}
	if len(p.known) >= lookedMax {
		p.forget()
	}
	p.looked[builds.IdentityOf(info)] = true
	p.note(kernel.LifePublisher{Inode: info.Sys().(*syscall.Stat_t).Ino, Size: uint64(info.Size())}, offset)
}

// note stores a variable's place. A full table starts over: it has programs that were replaced.
func (p *publishers) note(program kernel.LifePublisher, offset *int64) {
	at := place{offset: offset}
	if before, is := p.known[program]; is && (before.ambiguous || !same(before.offset, offset)) {
		at = place{ambiguous: true}
	}
	if p.store(program, at.offset) != nil {
		p.forget()
		_ = p.store(program, at.offset)
	}
	p.known[program] = at
}

func (p *publishers) forget() {
	for program := range p.known {
		_ = p.store(program, nil)
	}
	clear(p.known)
	clear(p.looked)
}

func same(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

func threadContext(pid int, expected fs.FileInfo) (*int64, error) {
	f, err := builds.Running(pid)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || builds.IdentityOf(info) != builds.IdentityOf(expected) {
		return nil, fs.ErrNotExist
	}
	program, err := builds.ELF(f)
	if err != nil {
		return nil, nil
	}
	if offset, ok := builds.ThreadContext(program); ok {
		return &offset, nil
	}
	return nil, nil
}
