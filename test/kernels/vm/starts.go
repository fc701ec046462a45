//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Threads rest after each turn: idle time is free for the emulator.
const (
	rest         = 5 * time.Millisecond
	restOfStarts = 20 * time.Millisecond
)

// loads keeps threads in the functions that probes attach to, busy and sleeping, until it is
// killed.
func loads() int {
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(24)
	loops, err := makeLoops()
	if err == nil {
		err = makeSleepers()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "loading:", err)
		return 1
	}
	for _, l := range loops {
		pause := rest
		switch l.name {
		case "pipe, write and read", "netlink, question and answer", "unix connection, from connect to close", "flock and unlock":
		case forks:
			pause = restOfStarts
		default:
			continue
		}
		long := unix.NsecToTimespec(int64(pause))
		beside(func() {
			l.turn()
			call(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&long)))
		})
	}
	fmt.Println("loaded")
	select {}
}

// makeSleepers makes threads sleep within traced functions: a pipe, an accept, a file lock.
func makeSleepers() error {
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		return err
	}
	listening, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(listening, &unix.SockaddrUnix{Name: "@sleepers"}); err != nil {
		return err
	}
	if err := unix.Listen(listening, 16); err != nil {
		return err
	}
	var locks [2]int
	for i := range locks {
		if locks[i], err = unix.Open(lockedFile+".sleepers", unix.O_CREAT|unix.O_RDWR, 0o600); err != nil {
			return err
		}
	}
	own := make([]byte, 8)
	beside(func() { call(unix.SYS_READ, uintptr(pipe[0]), pointer(own), 8) })
	beside(func() { call(unix.SYS_CLOSE, call(unix.SYS_ACCEPT4, uintptr(listening))) })
	call(unix.SYS_FLOCK, uintptr(locks[0]), unix.LOCK_EX)
	beside(func() { call(unix.SYS_FLOCK, uintptr(locks[1]), unix.LOCK_EX) })
	address := append([]byte{unix.AF_UNIX, 0, 0}, "sleepers"...)
	go func() {
		for {
			time.Sleep(restOfStarts)
			call(unix.SYS_WRITE, uintptr(pipe[1]), pointer(buffer[:]), 8)
			ours := call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0)
			call(unix.SYS_CONNECT, ours, pointer(address), uintptr(len(address)))
			call(unix.SYS_CLOSE, ours)
		}
	}()
	return nil
}

// startAndStop attaches and detaches probes under load. Loading lasts most of a minute, so later
// processes attach the loaded programs. Every second one is killed.
func startAndStop(to io.Writer, options string, times int) error {
	whole := number(options, "whole")
	end, err := besideLoad()
	if err != nil {
		return err
	}
	defer end()
	// The last one's programs stay.
	var programs map[string]*ebpf.Program
	defer func() { forget(programs) }()
	for i := range whole {
		meanwhile := func() (err error) {
			if i == whole-1 {
				programs, err = loadedPrograms()
			}
			return err
		}
		if err := startOnce(to, i%2 == 1, meanwhile); err != nil {
			return fmt.Errorf("start, %d of %d times: %w", i+1, whole, err)
		}
	}
	for i := range times {
		if err := attachOnce(to, i%2 == 1); err != nil {
			return fmt.Errorf("attaching, %d of %d times: %w", i+1, times, err)
		}
	}
	return nil
}

// besideLoad returns when other threads are in the functions that probes attach to, until end.
func besideLoad() (end func(), err error) {
	others := exec.Command(filepath.Join(pluginFolder, "loading"))
	others.Stderr = os.Stderr
	says, err := others.StdoutPipe()
	if err == nil {
		err = others.Start()
	}
	if err != nil {
		return nil, err
	}
	if loaded := bufio.NewScanner(says); !loaded.Scan() {
		return nil, errors.New("there is no load")
	}
	return func() { _ = others.Process.Kill() }, nil
}

func startOnce(to io.Writer, kill bool, meanwhile func() error) error {
	began := time.Now()
	p, way, err := startProbe("")
	if err != nil {
		return err
	}
	attached := time.Since(began)
	return p.duringACall(func() error {
		if err := meanwhile(); err != nil {
			return err
		}
		took, how, err := p.stop(kill)
		if err == nil {
			_, err = fmt.Fprintf(to, "\nstarted %s %d %s %d\n", way, attached.Microseconds(), how, took.Microseconds())
		}
		return err
	})
}
