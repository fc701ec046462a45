//go:build linux

package scenarios

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/standin"
)

func taken(s *scene, n rig.Net) func() {
	dir := filepath.Join(n.DataDir, n.Name)
	harness.Check(s.T, os.MkdirAll(dir, 0o755))
	for i := range 40_000 {
		name := filepath.Join(dir, fmt.Sprintf("10.%d.%d.%d", 200+i>>16, i>>8&255, i&255))
		harness.Check(s.T, os.WriteFile(name, []byte("somebody\r\neth0"), 0o600))
	}
	return func() { harness.Check(s.T, os.RemoveAll(dir)) }
}

// answeringAPIServer answers after a time.
func answeringAPIServer(after time.Duration, says string) func(*scene, rig.Net) func() {
	return func(s *scene, _ rig.Net) func() { return answersAfter(s.T, "tcp", apiServer, after, says) }
}

// without takes a plugin out of the directory.
func without(name string) func(*scene, rig.Net) func() {
	return func(s *scene, _ rig.Net) func() {
		path := filepath.Join(s.rig.CNIBinDir(), name)
		harness.Check(s.T, os.Rename(path, path+".away"))
		return func() { harness.Check(s.T, os.Rename(path+".away", path)) }
	}
}

func busyAgent(s *scene, _ rig.Net) func() {
	return answers(s, func() { time.Sleep(200 * time.Millisecond) }, http.StatusTooManyRequests)
}

// slowAgent computes before it answers; an idle one has another cause.
func slowAgent(s *scene, _ rig.Net) func() {
	return answers(s, func() {
		for until := time.Now().Add(800 * time.Millisecond); time.Now().Before(until); {
		}
	}, http.StatusOK)
}

func answers(s *scene, first func(), status int) func() {
	harness.Check(s.T, os.MkdirAll(filepath.Dir(ciliumSocket), 0o755))
	_ = os.Remove(ciliumSocket)
	l, err := net.Listen("unix", ciliumSocket)
	harness.Check(s.T, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		first()
		w.WriteHeader(status)
	})}
	go func() { _ = server.Serve(l) }()
	return func() { server.Close() }
}

func writesMeanwhile(s *scene, _ rig.Net) func() {
	sleeps := func() bool {
		all, _ := filepath.Glob("/proc/[0-9]*/comm")
		return slices.ContainsFunc(all, func(file string) bool { name, _ := os.ReadFile(file); return string(name) == "sleeper\n" })
	}
	end := whenever(sleeps, func() {
		time.Sleep(200 * time.Millisecond) // sooner, it may precede the call
		_ = os.WriteFile(filepath.Join(s.rig.CNIConfDir(), "99-other.conflist"), []byte(`{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"idler"}]}`), 0o600)
	})
	return func() {
		end()
		_ = os.Remove(filepath.Join(s.rig.CNIConfDir(), "99-other.conflist"))
	}
}

func crowd(s *scene, _ rig.Net) func() {
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		runtime.LockOSThread() // until it ends
		var first unix.CPUSet
		first.Set(0)
		fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1} // a share of groups would be half
		harness.Check(s.T, errors.Join(unix.SchedSetaffinity(0, &first), unix.SchedSetAttr(0, &fifo, 0)))
		for ctx.Err() == nil {
			for began := time.Now(); time.Since(began) < 8*time.Millisecond; {
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	return func() { stop(); all.Wait() }
}

const hogDir = "/run/cniscope-scenario/hog"

// hogRtnl holds the kernel's network lock for two seconds; the plugin continues once it is held.
func hogRtnl(s *scene, _ rig.Net) func() {
	harness.Check(s.T, os.RemoveAll(hogDir))
	harness.Check(s.T, os.MkdirAll(hogDir, 0o755))
	pipe := func(name string) *os.File {
		file := filepath.Join(hogDir, name)
		harness.Check(s.T, unix.Mkfifo(file, 0o600))
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		harness.Check(s.T, err)
		return f
	}
	asks, held := pipe("asks"), pipe("held")
	over := make(chan error, 1)
	go func() {
		if _, err := bufio.NewReader(asks).ReadString('\n'); err != nil {
			over <- nil // no request
			return
		}
		wait, err := standin.HoldRtnl(hogDir, 2*time.Second)
		_, _ = held.WriteString("held\n")
		if err == nil {
			err = wait()
		}
		over <- err
	}()
	return func() {
		_ = asks.Close()
		harness.Check(s.T, <-over)
		harness.Check(s.T, errors.Join(held.Close(), os.RemoveAll(hogDir)))
	}
}

const recording = "CNISCOPE_TEST_RECORDING"

func (s *scene) record() {
	file := os.Getenv(recording)
	if file == "" {
		return
	}
	recorder := exec.Command(program, "record", file, "--overwrite", "--config", s.scope.Config())
	recorder.Stderr = s.Output()
	harness.Check(s.T, recorder.Start())
	s.Cleanup(func() {
		_ = recorder.Process.Signal(os.Interrupt)
		_ = recorder.Wait()
	})
}
