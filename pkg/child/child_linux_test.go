package child

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

func TestPipesThatCannotAllBeMadeAreClosed(t *testing.T) {
	var before unix.Rlimit
	harness.Check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	lowest := func() uint64 { // first free descriptor
		f := harness.Must(os.Open(os.DevNull))(t)
		defer f.Close()
		return uint64(f.Fd())
	}
	first := lowest()
	for more := range uint64(6) {
		harness.Check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: first + more, Max: before.Max}))
		_, err := Start([]string{"/bin/true"}, 2)
		harness.Check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
		if err == nil {
			t.Fatalf("with room for %d files there are three pipes", more)
		}
		harness.Equal(t, lowest(), first, "with room for", more, "files some stay open: the next one")
	}
	if _, err := Start([]string{"/no/such/program"}, 2); err == nil || lowest() != first {
		t.Errorf("%v, and the next file is %d, not %d", err, lowest(), first)
	}
}
