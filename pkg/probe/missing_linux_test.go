package probe

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func init() {
	// A plugin that waits for a file and for a lock file until SIGTERM, and prints how many times it tried.
	acts["poll"] = func(dir string) error {
		ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
		defer stop()
		tries := 0
		for ; ctx.Err() == nil; tries++ {
			if _, err := os.Stat(filepath.Join(dir, "indicator")); err == nil {
				return fmt.Errorf("the file is there")
			}
			if f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				f.Close()
				return fmt.Errorf("the lock is free")
			}
			time.Sleep(150 * time.Millisecond)
		}
		fmt.Println(tries)
		return nil
	}
}

func TestAFileThatIsPolledForIsSeen(t *testing.T) {
	for _, way := range []string{"", "system-calls"} {
		dir := t.TempDir()
		harness.Check(t, os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600))
		cmd := acting(t, "poll", dir)
		var out strings.Builder
		cmd.Stdout = &out
		o := observeProbe(t, Options{Detail: DetailAuto, Way: way, Linger: time.Second}, func(_ *Probe, o *observed) {
			harness.Check(t, cmd.Start())
			defer func() { _ = cmd.Process.Kill() }() // if it is not reported
			for _, name := range []string{"indicator", "lock"} {
				o.until(t, name, func(e event.Body) bool {
					m, is := e.(*event.Missing)
					return is && filepath.Base(m.Path) == name && m.Count > 2
				})
			}
			harness.Check(t, cmd.Process.Signal(unix.SIGTERM))
			harness.Check(t, cmd.Wait())
		})
		tries := harness.Must(strconv.ParseUint(strings.TrimSpace(out.String()), 10, 64))(t)
		want := map[string]string{"indicator": "newfstatat ENOENT", "lock": "openat EEXIST"}
		for _, m := range all[*event.Missing](o) {
			is, known := want[filepath.Base(m.Path)]
			if known && (m.Name+" "+m.Error != is || m.Count < 2 || m.Count > tries || m.Start == 0) {
				t.Errorf("%q: %+v after %d tries", way, m, tries)
			}
		}
	}
}

// Only a run that sleeps, or reports nothing, may poll for a file.
func TestARunThatWorksIsNoPoller(t *testing.T) {
	const ms = int64(time.Millisecond)
	for name, c := range map[string]struct {
		slept  int64 // of each 100 ms
		silent int64
		want   bool
	}{
		"works": {slept: 5 * ms}, "sleeps": {slept: 90 * ms, want: true}, "waits": {silent: 600 * ms, want: true},
	} {
		table := newTable(nil)
		table.note(event.Event{Time: ms, Body: &event.Exec{Process: "1@1", Root: true}})
		table.note(event.Event{Time: 2 * ms, Body: &event.Fork{Parent: "1@1", Process: "2@2"}})
		at := 100 * ms
		for ; at <= 1000*ms; at += 100 * ms {
			if table.polls(at) && at < int64(pollingAfter) {
				t.Errorf("%s: polls after %v", name, time.Duration(at))
			}
			table.note(event.Event{Time: at, Body: &event.Wait{Process: "2@2", Kind: event.WaitSleep, Start: at - c.slept}})
		}
		if got := table.polls(at - 100*ms + c.silent); got != c.want {
			t.Errorf("%s: polls is %t", name, got)
		}
	}
}
