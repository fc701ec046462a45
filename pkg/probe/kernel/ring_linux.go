package kernel

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Ring reads a ring buffer. Unlike cilium/ebpf's it waits in the runtime's poller, and maps records once, since Linux
// counts a second mapping as memory. One goroutine reads; any may call Wake and Close.
type Ring struct {
	file *os.File // for the poller
	wait syscall.RawConn

	mu                 sync.Mutex // no reads after unmapping
	consumer, producer []byte     // reader's page; kernel's page and records
	data               []byte
	record             []byte
	woken              atomic.Bool
}

// header is struct bpf_ringbuf_hdr (kernel/bpf/ringbuf.c).
const header = 8

// openRing maps a ring buffer until Close.
func openRing(m *ebpf.Map) (_ *Ring, err error) {
	r := &Ring{}
	defer func() {
		if err != nil {
			_ = r.Close()
		}
	}()
	page, size := os.Getpagesize(), int(m.MaxEntries())
	if r.consumer, err = unix.Mmap(m.FD(), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("mapping where the reader is: %w", err)
	}
	if r.producer, err = unix.Mmap(m.FD(), int64(page), page+size, unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("mapping the records: %w", err)
	}
	r.data = r.producer[page:]
	fd, err := unix.FcntlInt(uintptr(m.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // for the poller
		return nil, errors.Join(err, unix.Close(fd))
	}
	r.file = os.NewFile(uintptr(fd), "ring buffer")
	if err := r.file.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("waiting for records: %w", err)
	}
	r.wait, err = r.file.SyscallConn()
	return r, err
}

// Wait returns for a record, at until (zero: never), or after Wake. After Close it fails with os.ErrClosed.
func (r *Ring) Wait(until time.Time) error {
	if r.file.SetReadDeadline(until) != nil {
		return os.ErrClosed
	}
	err := r.wait.Read(func(uintptr) bool { return r.woken.Load() || r.Waiting() > 0 })
	r.woken.Store(false) // consumes earlier wake-ups
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return os.ErrClosed // the only other error
	}
	return nil
}

// Next returns the next record, valid until the next call.
func (r *Ring) Next() ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.data == nil {
		return nil, false
	}
	for at, end := r.positions(); at < end; {
		length := atomic.LoadUint32((*uint32)(unsafe.Pointer(&r.data[r.index(at)])))
		if length&unix.BPF_RINGBUF_BUSY_BIT != 0 {
			continue // being written
		}
		dropped := length&unix.BPF_RINGBUF_DISCARD_BIT != 0
		length &^= unix.BPF_RINGBUF_BUSY_BIT | unix.BPF_RINGBUF_DISCARD_BIT
		if !dropped {
			r.copy(at+header, int(length))
		}
		at += header + (uintptr(length)+7)&^7
		atomic.StoreUintptr(position(r.consumer), at)
		if !dropped {
			return r.record, true
		}
	}
	return nil, false
}

func (r *Ring) copy(at uintptr, length int) {
	from := r.data[r.index(at):]
	first := from[:min(length, len(from))]
	r.record = append(append(r.record[:0], first...), r.data[:length-len(first)]...)
}

// Waiting returns the unread bytes.
func (r *Ring) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.data == nil {
		return 0
	}
	at, end := r.positions()
	return int(end - at)
}

// Wake ends the current or next Wait.
func (r *Ring) Wake() {
	r.woken.Store(true)
	_ = r.file.SetReadDeadline(time.Unix(1, 0)) // Wait sets its deadline before it checks woken
}

// Close also ends a Wait.
func (r *Ring) Close() error {
	var err error
	if r.file != nil {
		err = r.file.Close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, mapped := range [][]byte{r.consumer, r.producer} {
		if mapped != nil {
			err = errors.Join(err, unix.Munmap(mapped))
		}
	}
	r.consumer, r.producer, r.data = nil, nil, nil
	return err
}

func (r *Ring) positions() (at, end uintptr) {
	return atomic.LoadUintptr(position(r.consumer)), atomic.LoadUintptr(position(r.producer))
}

func position(page []byte) *uintptr { return (*uintptr)(unsafe.Pointer(&page[0])) }

func (r *Ring) index(at uintptr) uintptr { return at & uintptr(len(r.data)-1) }
