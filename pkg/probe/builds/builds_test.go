package builds

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func tell(t *testing.T, b *Known, path string) string {
	t.Helper()
	run := func() string {
		e := &event.Exec{File: filepath.ToSlash(path), PID: uint32(os.Getpid()), Started: forked(t), InPath: true}
		b.Tell(event.Event{Body: e})
		return e.Build
	}
	run()
	b.look(<-b.looks)
	now := run()
	b.look(<-b.looks)
	return now
}

func write(t *testing.T, path string, content []byte, modified time.Time) {
	t.Helper()
	harness.Check(t, os.WriteFile(path, content, 0o700))
	harness.Check(t, os.Chtimes(path, modified, modified))
}

func TestACopyIsTheSameBuildAndAnotherProgramIsNot(t *testing.T) {
	dir, began := t.TempDir(), time.Unix(1e9, 0)
	plugin := filepath.Join(dir, "bridge")
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	b := New()
	write(t, plugin, content, began)
	first := tell(t, b, plugin)
	if len(first) != 16 {
		t.Fatalf("its build is %q", first)
	}
	write(t, plugin, content, began.Add(time.Hour)) // such as an agent that copies it at each start
	harness.Equal(t, tell(t, b, plugin), first, "a copy of")
	for i, at := range []int{0, len(content) / 2, len(content) - 1} {
		other := bytes.Clone(content)
		other[at]++
		write(t, plugin, other, began.Add(time.Duration(i+2)*time.Hour))
		if now := tell(t, b, plugin); now == first || now == "" {
			t.Errorf("with another byte at %d it is %q", at, now)
		}
	}
	write(t, plugin, content[1:], began.Add(9*time.Hour))
	if now := tell(t, b, plugin); now == first {
		t.Error("a shorter file has the same build")
	}
}

func TestWhatCannotBeLookedAtIsWhatItWas(t *testing.T) {
	dir := t.TempDir()
	plugin := filepath.Join(dir, "bridge")
	b := New()
	harness.Equal(t, tell(t, b, plugin), "", "a file that is not there")
	harness.Equal(t, tell(t, b, dir), "", "a folder")
	write(t, plugin, nil, time.Unix(1e9, 0))
	was := tell(t, b, plugin)
	harness.Check(t, os.Remove(plugin))
	if got := tell(t, b, plugin); got != was || was == "" {
		t.Errorf("it was %q and is %q", was, got)
	}
}

func TestOnlyPluginsAreLookedAt(t *testing.T) {
	self := harness.Must(os.Executable())(t)
	b := New()
	command := &event.Exec{File: self, PID: uint32(os.Getpid())}
	plugin := &event.Exec{File: self, PID: uint32(os.Getpid()), Started: forked(t), InPath: true}
	for _, e := range []event.Body{command, plugin, &event.Exit{}} {
		b.Tell(event.Event{Body: e})
	}
	if plugin.Build != "" || len(b.looks) != 1 {
		t.Fatalf("before anybody looked a plugin is of build %q, %d are to be looked at", plugin.Build, len(b.looks))
	}
	b.look(<-b.looks)
	for _, e := range []event.Body{command, plugin, &event.Exit{}} {
		b.Tell(event.Event{Body: e})
	}
	if command.Build != "" || plugin.Build == "" {
		t.Errorf("a command is of build %q, a plugin of %q", command.Build, plugin.Build)
	}
}

func TestAFileThatHangsHoldsUpNobody(t *testing.T) {
	b := New()
	for i := range 10 * waiting {
		for range 2 {
			b.Tell(event.Event{Body: &event.Exec{File: "/bin/" + strconv.Itoa(i), InPath: true}})
		}
	}
	if len(b.looks) != waiting || len(b.awaited) != waiting {
		t.Errorf("%d wait, %d are awaited, want %d", len(b.looks), len(b.awaited), waiting)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.Run(ctx)
}

func TestFilesThatHangHoldUpNoOther(t *testing.T) {
	b := New()
	hang := make(chan struct{})
	b.at = func(l look, _ file) (file, error) {
		if l.name != "/bin/bridge" {
			<-hang
		}
		return file{build: "of " + l.name}, nil
	}
	tell := func(name string) string {
		e := &event.Exec{File: name, InPath: true}
		b.Tell(event.Event{Body: e})
		return e.Build
	}
	for i := range abreast - 1 {
		tell("/mnt/" + strconv.Itoa(i))
	}
	ran := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		b.Run(ctx)
		close(ran)
	}()
	harness.Until(t, "a file that can be read is known", func() bool { return tell("/bin/bridge") == "of /bin/bridge" })
	cancel()
	<-ran
	close(hang)
	harness.Until(t, "those that hung are known", func() bool { return tell("/mnt/0") == "of /mnt/0" })
}
