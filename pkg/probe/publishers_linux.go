package probe

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/builds"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// publishers finds programs with a builds.ThreadContext.
type publishers struct {
	kernel   *kernel.Side
	looked   map[builds.Identity]bool
	patience procfs.Patience
}

const lookedMax = 256

func newPublishers(side *kernel.Side) *publishers {
	return &publishers{
		kernel: side, looked: map[builds.Identity]bool{}, patience: procfs.Patience{Each: 100 * time.Millisecond, Most: 4},
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
	}
	p.looked[builds.IdentityOf(info)] = true
	p.kernel.Publishes(info.Sys().(*syscall.Stat_t).Ino, uint64(info.Size()), offset)
}

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
