package subprocess

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/connector"
	"github.com/cniscope/cniscope/test/harness"
)

func TestAnOrderThatWasNotSentIsSentAgain(t *testing.T) {
	read, write, err := os.Pipe()
	harness.Check(t, err)
	defer read.Close()
	closed, gone, err := os.Pipe()
	harness.Check(t, err)
	_, _ = closed.Close(), gone.Close()
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
