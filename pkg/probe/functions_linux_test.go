package probe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// forker builds testdata/forker, without symbols, and returns a command that calls it as libcni would.
func forker(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := plugin(t, "forker", "")
	harness.Check(t, os.Remove(cmd.Path))
	build := exec.Command("go", "build", "-o", cmd.Path, "-ldflags=-s -w", "./testdata/forker")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %s", err, out)
	}
	return cmd
}

// forks are those of processes that ran a program: os/exec once forks without one.
func (o *observed) forks() (all []*event.Fork) {
	ran := o.execs()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		f, is := e.Body.(*event.Fork)
		if is && slices.ContainsFunc(ran, func(x *event.Exec) bool { return x.Process == f.Process }) {
			all = append(all, f)
		}
	}
	return all
}

// runs lets a forker run both commands, and lives until they are reported.
func (o *observed) runs(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	stdin := harness.Must(cmd.StdinPipe())(t)
	harness.Check(t, cmd.Start())
	harness.Until(t, "both commands have run", func() bool { return len(o.forks()) >= 2 })
	stdin.Close()
	harness.Check(t, cmd.Wait())
}

// A process that entered a container may run the container's program, which a tenant wrote.
func TestAProgramInOtherMountsIsNotNamed(t *testing.T) {
	cmd := forker(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	o := observe(t, func(o *observed) { o.runs(t, cmd) })
	for _, f := range o.forks() {
		if len(f.Stack) > 0 {
			t.Errorf("%+v", f.Stack)
		}
	}
}

func TestAForkNamesTheFunction(t *testing.T) {
	cmd := forker(t)
	o := observe(t, func(o *observed) { o.runs(t, cmd) })
	var lines []int
	for _, f := range o.forks() {
		var names []string
		for _, frame := range f.Stack {
			names = append(names, frame.Function+" "+filepath.Base(frame.File))
		}
		harness.Equal(t, strings.Join(names, ", "),
			"main.getNetAdapter main.go, main.configurator.configureContainerLink main.go, main.cmdAdd main.go, main.main.func1 main.go")
		if len(f.Stack) > 1 {
			lines = append(lines, f.Stack[1].Line)
		}
	}
	harness.Equal(t, fmt.Sprint(lines), "[14 17]", "the lines of its calls")
}

// A plugin's main goroutine waits for another, which reads from a pipe.
func TestTheFunctionOfAPluginIsNamed(t *testing.T) {
	cmd := forker(t)
	var stack []event.Frame
	observe(t, func(o *observed) {
		stdin := harness.Must(cmd.StdinPipe())(t)
		harness.Check(t, cmd.Start())
		harness.Until(t, "it is named", func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			for _, e := range o.events {
				if a, is := e.Body.(*event.Agent); is && len(a.Stack) > 0 && a.Since > 0 {
					stack = a.Stack
				}
			}
			return stack != nil
		})
		stdin.Close()
		harness.Check(t, cmd.Wait())
	})
	harness.Equal(t, stack[0].Function, "main.main")
}
