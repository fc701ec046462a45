package probe

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

var subscribers = map[string]func(string) error{
	// It connects to a unix socket, listens at LISTENS, and answers a call after twenty notifications.
	"subscriber": func(address string) error {
		up, err := net.Dial("unix", address)
		if err != nil {
			return err
		}
		told := make(chan struct{})
		go func() {
			for b := make([]byte, 64); ; {
				if _, err := up.Read(b); err != nil {
					return
				}
				select {
				case told <- struct{}{}:
				default: // no call
				}
			}
		}()
		return accepting("unix", os.Getenv(listens), func(c net.Conn) error {
			for range 20 {
				<-told
			}
			_, _ = c.Write([]byte("x"))
			return c.Close()
		})
	},
	// It listens there, and sends a notification every 10 ms.
	"teller": func(address string) error {
		l, err := net.Listen("unix", address)
		if err != nil {
			return err
		}
		c, err := l.Accept()
		for err == nil {
			time.Sleep(10 * time.Millisecond)
			_, err = c.Write([]byte("changed"))
		}
		return err
	},
}

func besides(t *testing.T, peerAct, agentAct string) (peer, agent *os.Process, listen string) {
	t.Helper()
	dir := t.TempDir()
	address, argument := filepath.Join(dir, "peer.sock"), filepath.Join(dir, "peer.sock")
	if agentAct == "asker" {
		argument = "unix " + address
	}
	peer = startTalker(t, peerAct, address, listens+"=unix")
	harness.Listens(t, peer.Pid, address)
	listen = filepath.Join(dir, "agent.sock")
	agent = startTalker(t, agentAct, argument, listens+"="+listen)
	answered(t, listen)
	return peer, agent, listen
}

func TestWhatAnAgentIsToldUnasked(t *testing.T) {
	teller, agent, listen := besides(t, "teller", "subscriber")
	o := observe(t, func(o *observed) {
		o.agents = []int{agent.Pid}
		harness.Check(t, acting(t, "dial", "unix "+listen).Run())
	})
	exchanges := all[*event.Exchange](o)
	if len(exchanges) < 3 {
		t.Errorf("told of %d", len(exchanges))
	}
	for i, x := range exchanges {
		if !x.Unasked || x.Pending || x.Error != "" || (i == 0) != (x.Start == 0) || x.Peer == nil || int(x.Peer.PID) != teller.Pid {
			t.Errorf("%d: %+v, %+v", i, x, x.Peer)
		}
	}
}

func TestAnExchangeThatNeverEnds(t *testing.T) {
	for _, peerEnds := range []bool{true, false} {
		t.Run(fmt.Sprint("the peer: ", peerEnds), func(t *testing.T) {
			peer, agent, listen := besides(t, "answerer", "asker")
			ends, want := agent, []string{"closed"}
			if peerEnds {
				ends, want = peer, []string{"EOF", "ECONNRESET"} // unread request
			}
			o := observe(t, func(o *observed) {
				o.agents = []int{agent.Pid}
				harness.Check(t, peer.Signal(unix.SIGSTOP))
				plugin := acting(t, "dial", "unix "+listen)
				plugin.Stderr = nil
				harness.Check(t, plugin.Start())
				o.until(t, "it waits", func(b event.Body) bool { x, is := b.(*event.Exchange); return is && x.Pending && x.Peer != nil })
				harness.Check(t, ends.Kill())
				o.until(t, "it is over", func(b event.Body) bool { x, is := b.(*event.Exchange); return is && !x.Pending })
				_ = plugin.Wait()
			})
			exchanges := all[*event.Exchange](o)
			if last := exchanges[len(exchanges)-1]; !slices.Contains(want, last.Error) || last.Start != exchanges[0].Start || last.Peer == nil {
				t.Errorf("%+v, %+v", last, last.Peer)
			}
		})
	}
}
