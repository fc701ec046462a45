package config

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cniscope/cniscope/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Passing tests never reach it.
const patience = 20 * time.Second

type scene struct {
	*testing.T
	dir, file string
	live      *Live
	applied   chan Options
	log       harness.Log
}

func newScene(t *testing.T, text string) *scene {
	t.Helper()
	dir := t.TempDir()
	s := &scene{T: t, dir: dir, file: filepath.Join(dir, "cniscope.toml"), applied: make(chan Options, 16)}
	s.write(text)
	return s
}

// started has a file's options in force, and watches the file.
func started(t *testing.T, text string) *scene {
	t.Helper()
	s := newScene(t, text)
	s.start(Source{Base: Default(), Path: s.file})
	return s
}

func (s *scene) start(source Source) {
	s.Helper()
	s.live = harness.Must(Open(source))(s)
	s.run()
	// The watch exists by then.
	s.says("nothing changed")
}

func (s *scene) run() {
	s.Helper()
	harness.During(s, func(ctx context.Context) {
		s.live.Run(ctx, slog.New(slog.NewTextHandler(&s.log, nil)), func(o Options) { s.applied <- o })
	})
	s.live.Reload()
}

func (s *scene) write(text string) {
	s.Helper()
	harness.Check(s, os.WriteFile(s.file, []byte(text), 0o600))
}

func (s *scene) configure(text string) {
	s.Helper()
	harness.Check(s, s.live.Configure(text))
}

func (s *scene) replace(text string) {
	s.Helper()
	fresh := filepath.Join(s.dir, ".cniscope.toml.swp")
	harness.Check(s, os.WriteFile(fresh, []byte(text), 0o600))
	harness.Check(s, os.Rename(fresh, s.file))
}

func (s *scene) next() Options {
	s.Helper()
	select {
	case o := <-s.applied:
		return o
	case <-time.After(patience):
		s.Fatalf("nothing was applied; the log:\n%s", s.log.String())
		return Options{}
	}
}

func (s *scene) says(text string) {
	s.Helper()
	harness.Eventually(s, func() error { return harness.Contains(s.log.String(), text) })
}

func TestAChangedFileIsApplied(t *testing.T) {
	s := started(t, "slow.command = \"1s\"")

	s.write("slow.command = \"2s\"")
	harness.Equal(t, s.next().Slow.Command, 2*time.Second)
	s.says("slow.command: 1s -> 2s")
	harness.Equal(t, s.live.Options().Slow.Command, 2*time.Second, "Options returns the old ones")
}

func TestAFileRenamedOverTheOldIsApplied(t *testing.T) {
	s := started(t, "")

	for _, d := range []string{"2s", "3s"} { // another inode
		s.replace(`slow.command = "` + d + `"`)
		harness.Equal(t, s.next().Slow.Command.String(), d)
	}
}

// A ConfigMap: cniscope.toml -> ..data/cniscope.toml, ..data -> ..1.
func TestASwappedConfigMapIsApplied(t *testing.T) {
	s := newScene(t, "")
	put := func(version, text string) {
		t.Helper()
		dir := filepath.Join(s.dir, version)
		harness.Check(t, os.Mkdir(dir, 0o700))
		harness.Check(t, os.WriteFile(filepath.Join(dir, "cniscope.toml"), []byte(text), 0o600))
		harness.Check(t, os.Symlink(version, filepath.Join(s.dir, "..tmp")))
		harness.Check(t, os.Rename(filepath.Join(s.dir, "..tmp"), filepath.Join(s.dir, "..data")))
	}
	harness.Check(t, os.Remove(s.file))
	harness.Check(t, os.Symlink(filepath.Join("..data", "cniscope.toml"), s.file))
	put("..1", "slow.command = \"1s\"")
	s.start(Source{Base: Default(), Path: s.file})

	put("..2", "slow.command = \"2s\"")
	harness.Equal(t, s.next().Slow.Command, 2*time.Second)
}

func TestABrokenFileKeepsTheOldOptionsAndSaysSoOnce(t *testing.T) {
	s := started(t, "slow.command = \"1s\"")

	s.write("slow.comand = \"2s\"")
	s.says("keeping the old options")
	s.says("slow.comand")
	s.live.Reload()
	s.replace("slow.command = \"3s\"")
	harness.Equal(t, s.next().Slow.Command, 3*time.Second)
	s.says("valid again")
	harness.Equal(t, strings.Count(s.log.String(), "keeping the old options"), 1, "times")
}

func TestABusyFolderDoesNotPutOptionsOff(t *testing.T) {
	s := started(t, "slow.command = \"1s\"")
	s.write("slow.comand = \"2s\"")
	s.says("keeping the old options")

	done, busy := make(chan struct{}), sync.WaitGroup{}
	busy.Go(func() {
		every := time.NewTicker(settle / 10)
		defer every.Stop()
		for {
			select {
			case <-done:
				return
			case <-every.C:
				_ = os.WriteFile(filepath.Join(s.dir, "of-others"), nil, 0o600)
			}
		}
	})
	defer busy.Wait()
	defer close(done)
	s.replace("slow.command = \"3s\"")
	harness.Equal(t, s.next().Slow.Command, 3*time.Second)
}

func TestAFileThatWasThereMayNotVanish(t *testing.T) {
	s := newScene(t, "slow.command = \"1s\"")
	s.start(Source{Base: Default(), Path: s.file, Optional: true})

	harness.Check(t, os.Remove(s.file))
	s.says("put it back; an empty file means the defaults")
	harness.Equal(t, s.live.Options().Slow.Command, time.Second, "back at the defaults")
	s.write("")
	harness.Equal(t, s.next().Slow.Command, Default().Slow.Command)
}

func TestAFileMayAppear(t *testing.T) {
	s := newScene(t, "")
	harness.Check(t, os.Remove(s.file))
	s.start(Source{Base: Default(), Path: s.file, Optional: true})
	s.write("slow.command = \"1s\"")
	harness.Equal(t, s.next().Slow.Command, time.Second)
}

func TestWhatNeedsARestartIsSaidAndNotApplied(t *testing.T) {
	s := started(t, "")

	s.write("export.queue = 7")
	s.says("export.queue: 512 -> 7 (needs a restart)")
	s.write("export.queue = 7\nlog.level = \"debug\"")
	got := s.next()
	if got.Export.Queue != 512 || got.Log.Level != "debug" {
		t.Errorf("queue %d, level %s", got.Export.Queue, got.Log.Level)
	}
	harness.Equal(t, strings.Count(s.log.String(), "export.queue"), 1, "times")
}

func TestSIGHUPReadsAFileWhoseFolderIsNotWatched(t *testing.T) {
	s := newScene(t, "")
	elsewhere := filepath.Join(t.TempDir(), "real.toml")
	harness.Check(t, os.WriteFile(elsewhere, nil, 0o600))
	harness.Check(t, os.Remove(s.file))
	harness.Check(t, os.Symlink(elsewhere, s.file))
	s.start(Source{Base: Default(), Path: s.file})
	harness.Check(t, os.WriteFile(elsewhere, []byte("slow.command = \"1s\""), 0o600))
	s.live.Reload()
	harness.Equal(t, s.next().Slow.Command, time.Second)
}

func TestAFolderThatAppearsIsWatched(t *testing.T) {
	s := newScene(t, "")
	file := filepath.Join(s.dir, "later", "cniscope.toml")
	s.start(Source{Base: Default(), Path: file, Optional: true})
	harness.Check(t, os.Mkdir(filepath.Dir(file), 0o700))
	harness.Check(t, os.WriteFile(file, []byte("slow.command = \"1s\""), 0o600))
	harness.Equal(t, s.next().Slow.Command, time.Second)
}

func TestTheTextOfNRIComesOnTop(t *testing.T) {
	s := started(t, "slow.command = \"1s\"")

	s.configure("slow.command = \"2s\"")
	harness.Equal(t, s.next().Slow.Command, 2*time.Second)
	s.configure("[slow]\ncommand = 2")
	s.says("NRI configuration:2:1: slow.command: is a number")
	s.configure("")
	harness.Equal(t, s.next().Slow.Command, time.Second)
}

// The runtime configures a pre-installed plugin before it starts.
func TestBeforeRunTheTextOfNRIIsInForceAsAWhole(t *testing.T) {
	s := newScene(t, "slow.command = \"1s\"\nexport.queue = 7")
	live := harness.Must(Open(Source{Base: Default(), Path: s.file}))(t)
	harness.Check(t, live.Configure("state.dir = \"/run/other\"\nexport.queue = 8"))
	if err := live.Configure("state.dir = 7"); err == nil {
		t.Error("a wrong text is taken")
	}
	if o := live.Options(); o.State.Dir != "/run/other" || o.Export.Queue != 8 || o.Slow.Command != time.Second {
		t.Errorf("in force: %+v", o)
	}
}

func TestNoFileAtAll(t *testing.T) {
	s := newScene(t, "")
	s.start(Source{Base: Default()})
	s.configure("slow.command = \"2s\"")
	harness.Equal(t, s.next().Slow.Command, 2*time.Second)
}

func TestOpenRefusesWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "none.toml"), "/dev/zero"} {
		if _, err := Open(Source{Base: Default(), Path: path}); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}
