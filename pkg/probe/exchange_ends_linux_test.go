package probe

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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

// forgers are an agent with other clients than plugins, and processes that want to be awaited.
var forgers = map[string]func(string) error{
	// "network address": it answers requests there, and over unix sends notifications. It also listens at LISTENS,
	// and answers calls later.
	"public": func(at string) error {
		network, address, _ := strings.Cut(at, " ")
		l, err := net.Listen(network, address)
		if err != nil {
			return err
		}
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				go serveAnybody(c, network == "unix")
			}
		}()
		return accepting("unix", os.Getenv(listens), func(c net.Conn) error {
			time.Sleep(300 * time.Millisecond)
			_, _ = c.Write([]byte("x"))
			return c.Close()
		})
	},
	// "network from to": it binds an address, and sends a request every 20 ms.
	"client": func(argument string) error { return dialledFrom(argument, true) },
	// The same, but it acknowledges each message after 20 ms.
	"reader": func(argument string) error { return dialledFrom(argument, false) },
}

// serveAnybody answers requests; with tells it sends a notification after 5 ms without one.
func serveAnybody(c net.Conn, tells bool) {
	defer c.Close()
	b := make([]byte, 64)
	for {
		if tells {
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		}
		if _, err := c.Read(b); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if _, err := c.Write([]byte("x")); err != nil {
			return
		}
	}
}

func dialledFrom(argument string, asks bool) error {
	var network, from, to string
	if _, err := fmt.Sscan(argument, &network, &from, &to); err != nil {
		return err
	}
	var d net.Dialer
	if network == "unix" {
		d.LocalAddr = &net.UnixAddr{Name: from, Net: network}
		if from == "-" {
			d.LocalAddr = nil
		}
	} else if local, err := net.ResolveTCPAddr(network, from); err == nil {
		d.LocalAddr = local
	}
	c, err := d.Dial(network, to)
	for b := make([]byte, 64); err == nil; {
		if asks {
			_, _ = c.Write([]byte("?"))
		}
		_, err = c.Read(b)
		fmt.Println("it talks")
		time.Sleep(20 * time.Millisecond)
		if !asks {
			_, _ = c.Write([]byte("!"))
		}
	}
	return err
}

func TestWhoDialledAnAgentIsNotWaitedFor(t *testing.T) {
	for name, test := range map[string]struct{ network, from, act string }{
		"by TCP from a low port":      {"tcp", "127.0.0.1:%d", "client"},
		"by unix from its own path":   {"unix", "%s/own.sock", "client"},
		"by unix, and is told things": {"unix", "-", "reader"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := harness.Must(os.MkdirTemp("", "public"))(t)
			t.Cleanup(func() { os.RemoveAll(dir) })
			harness.Check(t, os.Chmod(dir, 0o777))
			address, from := filepath.Join(dir, "public.sock"), test.from
			if test.network == "tcp" {
				one, other := freePort(t), freePort(t)
				address, from = fmt.Sprint("127.0.0.1:", max(one, other)), fmt.Sprintf(from, min(one, other))
			} else if from != "-" {
				from = fmt.Sprintf(from, dir)
			}
			listen := filepath.Join(dir, "agent.sock")
			agent := startTalker(t, "public", test.network+" "+address, listens+"="+listen)
			harness.Listens(t, agent.Pid, listen)
			_ = os.Chmod(address, 0o777)
			user := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
			stranger := actCmd(t, test.act, fmt.Sprintf("%s %s %s", test.network, from, address), user)
			talks := harness.Must(stranger.StdoutPipe())(t)
			started(t, stranger)
			harness.Must(talks.Read(make([]byte, 1)))(t)
			o := observe(t, func(o *observed) {
				o.agents = []int{agent.Pid}
				o.all = true
				harness.Check(t, acting(t, "dial", "unix "+listen).Run())
			})
			if len(all[*event.Accept](o)) == 0 {
				t.Error("nobody answered")
			}
			for _, x := range all[*event.Exchange](o) {
				t.Errorf("%+v, %+v", x, x.Peer)
			}
		})
	}
}
