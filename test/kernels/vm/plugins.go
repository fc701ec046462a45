//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pluginFolder = "/opt/cni/bin"
	helper       = "/bin/helper"
	interpreter  = "/bin/interpreter"
)

var acts = map[string]func() int{
	"tree":        tree,
	"delegate":    delegate,
	"failing":     func() int { return 7 },
	"killed":      killed,
	"replaced":    replaced,
	"busy":        busy,
	"inside":      tell,
	"crowded":     func() int { return 0 },
	"tenant":      func() int { return 0 },
	"hung":        hung,
	"interpreter": func() int { return 0 },
	"helper":      help,
	"prober":      probes,
	"loading":     loads,
	"attaching":   attaching,
	"piping":      piping,
	"across":      across,
}

func install() error {
	for _, folder := range []string{pluginFolder, "/bin", "/tmp"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(acts)), slices.Collect(maps.Keys(insiders))) {
		folder := pluginFolder
		if name == filepath.Base(helper) || name == filepath.Base(interpreter) {
			folder = "/bin"
		}
		if err := os.Symlink("/init", filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(pluginFolder, "script"), []byte("#!"+interpreter+" option\n"), 0o755)
}

func act(name string) func() int {
	if do := insiders[name]; do != nil {
		return func() int {
			if err := do(); err != nil {
				fmt.Fprintln(os.Stderr, name+":", err)
				return 1
			}
			return 0
		}
	}
	return acts[name]
}

type self struct {
	NetNS  string // inode number
	Cookie uint64 // 0 before Linux 5.14
	Stdin  string // as in event.Exec
}

func tell() int {
	var s self
	link, _ := os.Readlink("/proc/self/ns/net")
	s.NetNS = strings.TrimSuffix(strings.TrimPrefix(link, "net:["), "]")
	if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
		s.Cookie, _ = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	}
	var st unix.Stat_t
	if unix.Fstat(0, &st) == nil {
		s.Stdin = fmt.Sprintf("%d:%d", unix.Major(st.Dev)<<20|unix.Minor(st.Dev), st.Ino)
	}
	if json.NewEncoder(os.Stdout).Encode(s) != nil {
		return 1
	}
	return 0
}

func tree() int {
	if exec.Command(helper, "0").Run() != nil {
		return 1
	}
	ipam := exec.Command(filepath.Join(pluginFolder, "delegate"))
	ipam.Stdin = strings.NewReader("{}")
	if ipam.Run() != nil {
		return 1
	}
	time.Sleep(time.Second) // the functions are named while it runs
	return 0
}

func delegate() int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func killed() int {
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

func replaced() int {
	failed := make(chan struct{})
	var other func()
	other = func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			go other()
			select {} // keeps the first thread
		}
		_ = unix.Exec(helper, []string{"helper", "5"}, os.Environ())
		close(failed)
	}
	go other()
	<-failed
	return 1
}

// busy runs more threads than CPUs until it used 80 ms.
func busy() int {
	var all sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		all.Go(func() {
			runtime.LockOSThread()
			for used() < 80*time.Millisecond {
			}
		})
	}
	all.Wait()
	return 0
}

func used() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func hung() int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 4
}

func help() int {
	code, _ := strconv.Atoi(os.Args[len(os.Args)-1])
	return code
}
