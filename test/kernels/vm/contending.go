//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// held is how long a waiter is kept from rtnl, well above the reporting thresholds (100 µs, 1 ms).
const held = 5 * time.Millisecond

// contending makes a thread wait for rtnl: its holder lists interfaces into a page that is missing.
func contending() error {
	runtime.GOMAXPROCS(4) // threads blocked in the kernel must not stop others
	if err := enter(); err != nil {
		return err
	}
	if err := loopback(true); err != nil { // the list contains interfaces with addresses
		return err
	}
	absent, err := notThere()
	if err != nil {
		return fmt.Errorf("memory that is not there: %w", err)
	}
	ns, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	listed, changed, waiter := make(chan error, 1), make(chan error, 1), make(chan int, 1)
	go inside(ns, listed, func() error { return list(absent.memory) })
	if err := absent.wanted(); err != nil {
		return fmt.Errorf("no thread waits for that memory: %w", err)
	}
	go inside(ns, changed, func() error {
		waiter <- unix.Gettid()
		return loopback(false)
	})
	select {
	case thread := <-waiter:
		if err := blocked(thread); err != nil {
			return err
		}
	case err := <-changed:
		return fmt.Errorf("no thread waits for rtnl: %w", err)
	}
	time.Sleep(held)
	return errors.Join(absent.give(), <-listed, <-changed)
}

func inside(ns int, done chan<- error, do func() error) {
	runtime.LockOSThread()
	err := unix.Setns(ns, unix.CLONE_NEWNET)
	if err == nil {
		err = do()
	}
	done <- err
}

// blocked returns once a thread waits for a kernel lock.
func blocked(thread int) error {
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", thread))
		if err != nil {
			return err
		}
		if _, state, _ := bytes.Cut(stat, []byte(") ")); bytes.HasPrefix(state, []byte("D")) {
			return nil
		}
		time.Sleep(20 * time.Microsecond)
	}
}

// list requests the interfaces' addresses: SIOCGIFCONF.
func list(memory []byte) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	wanted := struct {
		length int32
		into   *byte
	}{int32(len(memory)), &memory[0]}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCGIFCONF, uintptr(unsafe.Pointer(&wanted))); errno != 0 {
		return errno
	}
	return nil
}

// absent is a page whose access blocks: userfaultfd(2).
type absent struct {
	fd     int
	memory []byte
}

// Of linux/userfaultfd.h.
const (
	uffdAPI         = 0xaa
	uffdioAPI       = 0xc018aa3f
	uffdioRegister  = 0xc020aa00
	uffdioZeropage  = 0xc020aa04
	registerMissing = 1
	uffdMessage     = 32 // bytes
)

func notThere() (a absent, err error) {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		return a, errno
	}
	a.fd = int(fd)
	if a.memory, err = unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		return a, err
	}
	if err := a.tell(uffdioAPI, &[4]uint64{uffdAPI}); err != nil {
		return a, err
	}
	return a, a.tell(uffdioRegister, &[4]uint64{a.start(), uint64(len(a.memory)), registerMissing})
}

func (a absent) start() uint64 { return uint64(uintptr(unsafe.Pointer(&a.memory[0]))) }

func (a absent) tell(request uintptr, what *[4]uint64) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(a.fd), request, uintptr(unsafe.Pointer(what))); errno != 0 {
		return errno
	}
	return nil
}

func (a absent) wanted() error {
	_, err := unix.Read(a.fd, make([]byte, uffdMessage))
	return err
}

func (a absent) give() error {
	return a.tell(uffdioZeropage, &[4]uint64{a.start(), uint64(len(a.memory))})
}
