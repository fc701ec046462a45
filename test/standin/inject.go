//go:build linux

package standin

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// stage lets a program lose time: its journal, and the pipe to the test.
type stage struct {
	*journal
	mu      sync.Mutex // of asking
	answers *bufio.Reader
	hoard   []byte
}

func newStage(by string) (*stage, error) {
	j, err := openJournal(by)
	if err != nil {
		return nil, err
	}
	return &stage{journal: j, answers: bufio.NewReader(os.Stdin)}, nil
}

// ask requests an action from the test over pipes: a socket would be observed.
func (s *stage) ask(in *Injection, container string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Printf("ask %q %d %q %q %q\n", in.Of, in.For, in.Kind, container, in.Point)
	_, err := s.answers.ReadString('\n')
	return err
}

// at loses time if the injection is for this point.
func (s *stage) at(point string, in *Injection, container string) error {
	if in == nil || in.Point != point || in.Ends() && !first(container) {
		return nil
	}
	e := Entry{Container: container, What: "injected", Name: point + " " + in.Kind}
	switch in.Kind {
	case "sleep":
		return s.during(e, func() error { time.Sleep(in.For); return nil })
	case "compute":
		return s.during(e, func() error { compute(in.For); return nil })
	case "command":
		return s.during(e, func() error { return s.run(container, Control, "sleep", in.For.String(), PortOf(container)) })
	case "command's child":
		return s.during(e, func() error { return s.run(container, Control, "child", in.For.String(), PortOf(container)) })
	case "anonymous command":
		return s.during(e, func() error { return s.run(container, Control, "sleep", in.For.String(), "br-int") })
	case "memory":
		for { // until the kernel kills it
			page := make([]byte, 1<<20)
			for i := range page {
				page[i] = 1
			}
			s.hoard = append(s.hoard, page...)
		}
	case "lock":
		if err := s.ask(in, container); err != nil {
			return err
		}
		return s.during(e, func() error { return lockFile(lockPath()) })
	case "disk":
		if err := s.ask(in, container); err != nil {
			return err
		}
		return s.during(e, func() error { return os.WriteFile(filepath.Join(diskDir(), "file"), []byte(container), 0o600) })
	case "rtnl":
		if err := s.ask(in, container); err != nil {
			return err
		}
		return s.during(e, func() error { return touchLink(container) })
	}
	return s.ask(in, container)
}

// Ends reports whether the program exits; the next one then must not.
func (in *Injection) Ends() bool {
	return in.Kind == "kill" || in.Kind == "restart" || in.Kind == "memory"
}

func first(container string) bool {
	f, err := os.OpenFile(filepath.Join(os.Getenv(dirKey), "once-"+container), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

func lockPath() string { return filepath.Join(os.Getenv(dirKey), "store.lock") }

func diskDir() string { return filepath.Join(os.Getenv(dirKey), "disk") }

func lockFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX)
}

func compute(length time.Duration) {
	for until := time.Now().Add(length); time.Now().Before(until); {
	}
}

func (s *stage) run(container, name string, args ...string) error {
	cmd := exec.Command(filepath.Join(os.Getenv(dirKey), "bin", name), args...)
	cmd.Stderr = os.Stderr
	e := Entry{Container: container, What: "command", Name: name, Start: Now()}
	if err := cmd.Start(); err != nil {
		return err
	}
	e.PID = cmd.Process.Pid
	defer func() { s.note(e) }()
	return cmd.Wait()
}

// command is an external program that sleeps, or whose child does. Without arguments a file sets the duration.
func command() error {
	if len(os.Args) < 3 {
		text, err := os.ReadFile(filepath.Join(os.Getenv(dirKey), "periodic"))
		if length, invalid := time.ParseDuration(string(text)); err == nil && invalid == nil {
			time.Sleep(length)
		}
		return nil
	}
	length, err := time.ParseDuration(os.Args[2])
	if err != nil {
		return err
	}
	if os.Args[1] == "child" {
		return exec.Command("sleep", fmt.Sprint(length.Seconds())).Run()
	}
	time.Sleep(length)
	return nil
}
