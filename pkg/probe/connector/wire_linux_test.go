package connector

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/test/harness"
)

func TestNumbersThatAreMissing(t *testing.T) {
	g := newGaps()
	at := func(now int64, cpu uint32, numbers ...uint32) (lost uint64) {
		for _, n := range numbers {
			lost += g.take(message{cpu: cpu, seq: n}, now)
		}
		return lost
	}
	if n := at(1, 0, 1<<32-2, 1<<32-1, 0, 1) + at(1, 1, 7, 8); n != 0 || g.overdue(100) != 0 {
		t.Errorf("%d are lost, where none is missing", n)
	}
	if at(2, 0, 4, 2, 3); g.overdue(100) != 0 {
		t.Error("what was overtaken is lost")
	}
	at(3, 0, 7)
	harness.Equal(t, g.overdue(3), 0, "are lost too early")
	harness.Equal(t, g.overdue(4), 2, "are lost")
	harness.Equal(t, at(5, 1, 9+missingMax+1), missingMax+1, "are lost")
}

func FuzzParse(f *testing.F) {
	f.Add(make([]byte, messageMax))
	f.Add([]byte{1})
	f.Fuzz(func(_ *testing.T, b []byte) {
		if m, ok := parse(b); ok {
			m.notice()
		}
	})
}

func TestAPluginOfAMillisecondIsACallOrIsCounted(t *testing.T) {
	const plugins, loops = 200, 4
	file := filepath.Join(t.TempDir(), "bridge")
	program := harness.Must(exec.LookPath("true"))(t)
	text := harness.Must(os.ReadFile(program))(t)
	harness.Check(t, os.WriteFile(file, text, 0o755))
	o := observe(t)
	for range loops {
		loop := exec.Command("sh", "-c", "while :; do :; done")
		harness.Start(t, loop)
	}
	for range plugins {
		cmd := exec.Command(file)
		cmd.Env = []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=" + container, "CNI_PATH=" + filepath.Dir(file)}
		harness.Check(t, cmd.Run())
	}
	harness.Eventually(t, func() error {
		calls := 0
		for _, e := range o.list() {
			if x, is := e.Body.(*event.Exec); is && x.Root {
				calls++
			}
		}
		stats := o.Stats()
		missed := int(stats.Lost[proctracker.LostCall] + stats.Lost[proctracker.LostNotices])
		if calls+missed < plugins {
			return fmt.Errorf("of %d plugins %d are calls, and %d missed: %+v", plugins, calls, missed, stats)
		}
		t.Logf("%d calls, %d missed", calls, missed)
		return nil
	})
}

func TestMain(m *testing.M) { os.Exit(harness.Host(m)) }
