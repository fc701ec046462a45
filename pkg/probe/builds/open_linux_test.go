package builds

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	pipe, link, plain := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "plain")
	harness.Check(t, unix.Mkfifo(pipe, 0o600))
	write(t, plain, []byte("#!"), time.Unix(1e9, 0))
	harness.Check(t, os.Symlink(plain, link))
	for _, name := range []string{pipe, "/dev/null", dir, link} {
		if f, err := procfs.OpenRegular(name, unix.O_NOFOLLOW); err == nil {
			f.Close()
			t.Errorf("%s is opened", name)
		}
	}
	f := harness.Must(procfs.OpenRegular(plain, unix.O_NOFOLLOW))(t)
	defer f.Close()
	if got, err := io.ReadAll(f); string(got) != "#!" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

func forked(t *testing.T) int64 {
	t.Helper()
	stat := harness.Must(procfs.StatOf(os.Getpid()))(t)
	return stat.Start - clock.Suspended()
}

func TestAnotherProcessOfThePIDIsNotLookedAt(t *testing.T) {
	self := harness.Must(os.Executable())(t)
	l := look{"/nowhere/" + filepath.Base(self), os.Getpid(), forked(t)}
	f := harness.Must(l.open())(t)
	f.Close()
	l.started -= int64(time.Second)
	if f, err := l.open(); err == nil {
		f.Close()
		t.Error("the file of a process is opened that was forked later")
	}
}

func TestOnlyAnotherFileIsOpenedAgain(t *testing.T) {
	self := harness.Must(os.Executable())(t)
	running := look{self, os.Getpid(), forked(t)}
	known := harness.Must(running.at(file{}))(t)
	// Another process with the PID runs the same file.
	if now, err := (look{"/nowhere", os.Getpid(), 0}).at(known); now != known || err != nil {
		t.Errorf("the same file is %+v, %v; it was %+v", now, err, known)
	}
	for what, change := range map[string]func(*Identity){
		"device":   func(id *Identity) { id.device++ },
		"inode":    func(id *Identity) { id.inode++ },
		"size":     func(id *Identity) { id.size++ },
		"modified": func(id *Identity) { id.modified.Nsec++ },
		"changed":  func(id *Identity) { id.changed.Nsec++ },
	} {
		other := known
		if change(&other.id); (look{"/nowhere", os.Getpid(), 0}).runsStill(other) {
			t.Errorf("a file with another %s is the same", what)
		}
	}
	if running.runsStill(file{}) {
		t.Error("a file that nobody looked at is known")
	}
}
