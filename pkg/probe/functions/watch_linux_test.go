package functions

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

// The function in which a goroutine waits or computes is named, beside others that do the same before and after.
func TestTheFunctionOfAWaitIsNamed(t *testing.T) {
	for name, flags := range map[string][]string{
		"stripped": {"-trimpath", "-ldflags=-s -w"}, "stripped, PIE": {"-trimpath", "-buildmode=pie", "-ldflags=-s -w"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "waiter")
			build := exec.Command("go", append(append([]string{"build", "-o", file}, flags...), "./testdata/waiter")...)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%s: %s", err, out)
			}
			cmd := exec.Command(file)
			in := harness.Must(cmd.StdinPipe())(t)
			lines := bufio.NewReader(harness.Must(cmd.StdoutPipe())(t))
			harness.Check(t, cmd.Start())
			defer func() { in.Close(); _ = cmd.Wait() }()
			say := func(what string) {
				fmt.Fprintln(in, what)
				_, err := lines.ReadString('\n')
				harness.Check(t, err)
			}
			w := NewStacks().Watch(cmd.Process.Pid)
			if w == nil {
				t.Fatal("it has no names")
			}
			defer w.Close()
			looks := time.NewTicker(20 * time.Millisecond)
			defer looks.Stop()
			look := func(n int) {
				for range n {
					<-looks.C
					w.Look()
				}
			}
			for _, what := range []string{"sleeps", "naps", "computes"} {
				harness.Until(t, what+" is named", func() bool { // it needs a CPU
					say(what)
					look(1)
					before := w.Looks()
					look(20)
					last := w.Looks()
					say("")
					look(3)
					got, _ := w.Between(before, last)
					if len(got) > 0 && (got[0].Function != "main.(*server)."+what || len(got) < 2) {
						t.Errorf("%s: %+v, of %d places", what, got, len(w.stays))
					}
					return len(got) > 0
				})
			}
		})
	}
}

func TestAProgramWithoutGoFunctionsIsNotWatched(t *testing.T) {
	if w := NewStacks().Watch(1 << 23); w != nil {
		t.Error("a process that exited is watched")
	}
	cmd := exec.Command("sleep", "60")
	harness.Check(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if w := NewStacks().Watch(cmd.Process.Pid); w != nil {
		t.Error("a C program is watched")
	}
}
