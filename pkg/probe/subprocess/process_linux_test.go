package subprocess

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/probe/connector"
	"github.com/cniscope/cniscope/test/harness"
)

func TestPipesThatCannotAllBeMadeAreClosed(t *testing.T) {
	var before unix.Rlimit
	harness.Check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	lowest := func() uint64 { // first free descriptor, after the first pass
		ours, theirs, err := pipes()
		harness.Check(t, err)
		defer closeAll(theirs[:])
		defer closeAll(ours[:])
		return uint64(theirs[0].Fd()) // opened first
	}
	first := lowest()
	for more := range uint64(6) {
		harness.Check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: first + more, Max: before.Max}))
		_, _, err := pipes()
		harness.Check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
		if err == nil {
			t.Fatalf("with room for %d files there are three pipes", more)
		}
		harness.Equal(t, lowest(), first, "with room for", more, "files some stay open: the next one")
	}
}

func TestAnOrderThatWasNotSentIsSentAgain(t *testing.T) {
	read, write, err := os.Pipe()
	harness.Check(t, err)
	defer read.Close()
	closed, gone, err := os.Pipe()
	harness.Check(t, err)
	closeAll([]*os.File{closed, gone})
	p, asked := &Process{orders: gone}, 0
	p.options = connector.Options{Busy: func() bool {
		if asked++; asked == 2 {
			p.orders = write
		}
		return true
	}}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() { p.tellWhenBusy(over); close(ended) }()
	var got order
	_ = read.SetReadDeadline(time.Now().Add(time.Minute)) // so that the test ends
	if err := json.NewDecoder(read).Decode(&got); err != nil || !got.Busy {
		t.Errorf("%+v, %v", got, err)
	}
	close(over)
	<-ended
	_ = write.Close()
}
