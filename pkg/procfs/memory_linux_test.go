package procfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

func TestAFileThatHangsIsGivenUp(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "environ")
	harness.Check(t, unix.Mkfifo(pipe, 0o600))
	p := &Memory{patience: time.Millisecond, hungMax: 2}
	for range 10 {
		if _, err := p.read(pipe); !errors.Is(err, ErrHangs) {
			t.Fatal(err)
		}
	}
	harness.Equal(t, p.hung, 2, "threads hang")
	// An end that is open for both directions releases every reader.
	both, err := os.OpenFile(pipe, os.O_RDWR, 0)
	harness.Check(t, err)
	_ = both.Close()
}

func TestAFileThatIsThereIsRead(t *testing.T) {
	p := NewMemory()
	p.patience = time.Hour
	if data, err := p.Arguments(os.Getpid()); err != nil || !slices.Equal(data, os.Args) {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := p.Environment(1 << 30); !Gone(err) {
		t.Error(err)
	}
}
