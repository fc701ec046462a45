package probe

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
)

// publisher builds testdata/publisher.
func publisher(t *testing.T, to string) {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("needs a C compiler")
	}
	build := exec.Command("cc", "-O1", "-pthread", "-rdynamic", "-o", to, "testdata/publisher/publisher.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %s", err, out)
	}
}

// publishes reports whether the kernel side knows the file.
func publishes(t *testing.T, p *Probe, file string) func() bool {
	return func() bool {
		info := harness.Must(os.Stat(file))(t)
		inode := info.Sys().(*syscall.Stat_t).Ino
		found := false
		kernel.Each(p.kernel.Life.Publishers, func(program *kernel.LifePublisher, _ *int64) {
			found = found || *program == kernel.LifePublisher{Inode: inode, Size: uint64(info.Size())}
		})
		return found
	}
}

// span is what a thread of the publisher publishes; every eighth is valid.
func span(i int, trusted bool) event.ThreadSpan {
	trace, span := bytes.Repeat([]byte{byte(0xa0 + i)}, 16), bytes.Repeat([]byte{byte(0x10 + i)}, 8)
	return event.ThreadSpan{TraceContext: event.TraceContext{Parent: fmt.Sprintf("00-%x-%x-01", trace, span)}, Trusted: trusted}
}

// In other mounts a program may be a tenant's.
func TestASpanThatAThreadPublishes(t *testing.T) {
	for trusted, flags := range map[bool]uintptr{true: 0, false: syscall.CLONE_NEWNS} {
		threadsPublish(t, flags, trusted)
	}
}

func threadsPublish(t *testing.T, flags uintptr, trusted bool) {
	t.Helper()
	cmd := plugin(t, "publisher", "")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: flags}
	harness.Check(t, os.Remove(cmd.Path))
	publisher(t, cmd.Path)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	stdin := harness.Must(cmd.StdinPipe())(t)
	before := uint64(0)
	o := observe(t, func(o *observed) {
		before = o.probe.garbled.Load()
		harness.Check(t, cmd.Start())
		harness.Until(t, "its program was read", publishes(t, o.probe, cmd.Path))
		harness.Check(t, stdin.Close())
		harness.Check(t, cmd.Wait())
	})
	by := map[int]*event.Fork{}
	for _, f := range all[*event.Fork](o) {
		by[int(f.PID)] = f
	}
	for range 32 {
		var i, pid int
		harness.Must(fmt.Fscan(&out, &i, &pid))(t)
		f := by[pid]
		switch {
		case f == nil:
			t.Errorf("thread %d: its fork was not seen", i)
		case i%8 == 0 && (f.Thread == nil || *f.Thread != span(i, trusted)):
			t.Errorf("thread %d: %+v, want %+v", i, f.Thread, span(i, trusted))
		case i%8 != 0 && f.Thread != nil:
			t.Errorf("thread %d: %+v", i, f.Thread)
		}
	}
	harness.Equal(t, o.probe.garbled.Load()-before, 4*4, "garbage") // not null, invalidated, none
}

func TestAnAgentThatPublishesItsSpan(t *testing.T) {
	dir := t.TempDir()
	file, address := filepath.Join(dir, "publishd"), filepath.Join(dir, "agent.sock")
	publisher(t, file)
	agent := started(t, exec.Command(file, address))
	harness.Listens(t, agent.Pid, address)
	for _, way := range []string{"", "system-calls"} {
		published(t, way, agent.Pid, file, address)
	}
}

func published(t *testing.T, way string, agent int, file, address string) {
	t.Helper()
	o := observeProbe(t, Options{Way: way}, func(_ *Probe, o *observed) {
		o.agents = []int{agent}
		dial := func() { harness.Check(t, acting(t, "dial", "unix "+address).Run()) }
		dial()
		harness.Until(t, "its program was read", publishes(t, o.probe, file))
		dial()
	})
	var forks, answers []event.ThreadSpan
	for _, f := range all[*event.Fork](o) {
		if f.Thread != nil {
			forks = append(forks, *f.Thread)
		}
	}
	for _, a := range all[*event.Accept](o) {
		if a.Thread != nil {
			answers = append(answers, *a.Thread)
		}
	}
	if n := len(forks); n == 0 || forks[n-1] != span(0, true) { // the first call may be earlier than the reader
		t.Errorf("%+v", forks)
	}
	if n := len(answers); n == 0 || answers[n-1] != span(8, false) {
		t.Errorf("%+v", answers)
	}
}

func TestFilesWithOneInodeAndSize(t *testing.T) {
	one, two := int64(-8), int64(-16)
	for name, c := range map[string]struct {
		offsets []*int64
		want    *int64
	}{
		"the same file in two mounts":      {[]*int64{&one, &one}, &one},
		"a tenant's with another variable": {[]*int64{&one, &two, &two}, nil},
		"a tenant's without":               {[]*int64{&one, nil, &one}, nil},
		"a tenant's for one without":       {[]*int64{nil, &one}, nil},
	} {
		table := map[kernel.LifePublisher]*int64{}
		p := newPublishers(storing(table, 64))
		for _, offset := range c.offsets {
			p.note(kernel.LifePublisher{Inode: 1, Size: 2}, offset)
		}
		harness.Equal(t, table[kernel.LifePublisher{Inode: 1, Size: 2}], c.want, name)
	}
}

func TestAFullTableOfPublishersStartsOver(t *testing.T) {
	table, offset := map[kernel.LifePublisher]*int64{}, int64(8)
	p := newPublishers(storing(table, 64))
	for i := range uint64(100_000) {
		p.note(kernel.LifePublisher{Inode: i}, &offset)
		if table[kernel.LifePublisher{Inode: i}] == nil || len(table) > 64 || len(p.known) > 64 {
			t.Fatalf("program %d: %d in the table, %d known", i, len(table), len(p.known))
		}
	}
}

func storing(table map[kernel.LifePublisher]*int64, most int) func(kernel.LifePublisher, *int64) error {
	return func(program kernel.LifePublisher, offset *int64) error {
		if delete(table, program); offset == nil {
			return nil
		}
		if len(table) >= most {
			return syscall.E2BIG
		}
		table[program] = offset
		return nil
	}
}
