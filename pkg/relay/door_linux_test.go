package relay

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/queue"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
)

func stranger(t *testing.T, addr string, connections int, body []byte) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), strangerTo+"="+addr, fmt.Sprint(strangerHas, "=", connections))
	out := harness.Must(cmd.StdoutPipe())(t)
	in := harness.Must(cmd.StdinPipe())(t)
	harness.Check(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if _, err := fmt.Fprintf(in, "%d\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
	line := harness.Must(bufio.NewReader(out).ReadString('\n'))(t)
	return strings.TrimSpace(line)
}

// The runtime's child is a stranger, even of the same user.
func TestOnlyTheRuntimeIsAnswered(t *testing.T) {
	c, forged := otlptest.Collect(t, "127.0.0.1:0", &otlptest.Collector{}), recorded(t, "containerd-2.3.7.pb") // a span above a sandbox's call
	r := start(t, Options{}, to(c.Addr))
	harness.Equal(t, stranger(t, r.addr, 0, forged), "not answered", "a stranger")
	if s := r.Counts(); s.Refused[Stranger] == 0 || s.Received != 0 || s.Told != 0 {
		t.Errorf("%+v", s)
	}
	if told := r.told(); told != nil {
		t.Errorf("a stranger told of the spans %q", told)
	}
	accepted(t, r.addr, forged)
	harness.Until(t, "its spans are told", func() bool { return len(r.told()) > 0 })
}

func TestNobodyIsAnsweredWhileTheRuntimeIsUnknown(t *testing.T) {
	var known atomic.Bool
	r := start(t, Options{Runtime: func() []int {
		if known.Load() {
			return []int{os.Getpid()}
		}
		return nil
	}}, nil)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if answer, err := client.Post("http://"+r.addr+"/v1/traces", "application/x-protobuf", nil); err == nil {
		answer.Body.Close()
		t.Errorf("answered %d", answer.StatusCode)
	}
	if s := r.Counts(); s.Refused[NoRuntime] == 0 {
		t.Errorf("%+v", s)
	}
	known.Store(true)
	accepted(t, r.addr, encode(t, &tracepb.Span{Name: "x"}))
}

// Idle, slow, half-open and endless strangers hold no place.
func TestStrangersHoldNoPlace(t *testing.T) {
	r := start(t, Options{}, nil)
	harness.Equal(t, stranger(t, r.addr, 500, nil), "not answered", "a stranger")
	accepted(t, r.addr, encode(t, &tracepb.Span{Name: "x"}))
	harness.Until(t, "all strangers are sent away", func() bool {
		s := r.Counts()
		return s.Refused[Stranger]+s.Refused[Unseen] >= 501
	})
}

func newDoorAt(t *testing.T, runtime func() []int, refused func(Refusal)) (d *door, addr string) {
	t.Helper()
	l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	return newDoor(l.(*net.TCPListener), runtime, refused, slog.New(slog.DiscardHandler)), l.Addr().String()
}

// A check reads /proc, so one is for all clients that have arrived.
func TestArrivalsAreCheckedTogether(t *testing.T) {
	const clients = 50
	var checks, refused atomic.Int32
	goOn := make(chan struct{})
	d, addr := newDoorAt(t, func() []int {
		if checks.Add(1) == 1 {
			<-goOn
		}
		return nil
	}, func(Refusal) { refused.Add(1) })
	defer d.Close()
	for range clients {
		c := harness.Must(net.Dial("tcp", addr))(t)
		defer c.Close()
		harness.Until(t, "the first is checked", func() bool { return checks.Load() == 1 })
	}
	harness.Until(t, "all have arrived", func() bool { return len(d.arrivals) == clients-1 })
	close(goOn)
	harness.Until(t, "all are refused", func() bool { return refused.Load() == clients })
	harness.Equal(t, checks.Load(), 2, "checks")
}

// More connections than the runtime needs are closed unread, and unaccepted ones at the end.
func TestTheRuntimeHasABoundOfConnections(t *testing.T) {
	const more = 3
	var busy, others atomic.Int32
	d, addr := newDoorAt(t, func() []int { return []int{os.Getpid()} }, func(why Refusal) {
		if why == Busy {
			busy.Add(1)
		} else {
			others.Add(1)
		}
	})
	var clients []net.Conn
	for i := range maxConnections + more {
		c, err := net.Dial("tcp", addr)
		if i >= maxConnections && errors.Is(err, syscall.ECONNRESET) {
			continue // closed before Dial returned
		}
		harness.Check(t, err)
		defer c.Close()
		clients = append(clients, c)
	}
	harness.Until(t, "all are answered", func() bool { return busy.Load() == more && len(d.admitted) == maxConnections })
	c := harness.Must(d.Accept())(t)
	defer c.Close()
	harness.Check(t, d.Close())
	harness.Equal(t, others.Load(), 0, "refused for another reason")
	open := 0
	for _, client := range clients {
		if client.LocalAddr().String() == c.RemoteAddr().String() {
			open++
		} else if _, err := client.Read(make([]byte, 1)); err == nil {
			t.Error("a closed connection has data")
		}
	}
	harness.Equal(t, open, 1, "accepted")
	if _, err := d.Accept(); err == nil {
		t.Error("it accepts after its end")
	}
}

// What has arrived when a door closes is closed, too.
func TestAClosedDoorAnswersNobody(t *testing.T) {
	var looks atomic.Int32
	goOn := make(chan struct{})
	d, addr := newDoorAt(t, func() []int {
		if looks.Add(1) == 1 {
			<-goOn
		}
		return nil
	}, func(Refusal) {})
	clients := make([]net.Conn, 2+maxArrivals) // one is looked at, and one waits for room
	for i := range clients {
		clients[i] = harness.Must(net.Dial("tcp", addr))(t)
		defer clients[i].Close()
		harness.Until(t, "the first is looked at", func() bool { return looks.Load() == 1 })
	}
	harness.Until(t, "there is no more room", func() bool { return len(d.arrivals) == maxArrivals })
	closed := make(chan error)
	go func() { closed <- d.Close() }()
	harness.Until(t, "no connection is accepted", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	select {
	case err := <-closed:
		t.Error("it is closed before the look is over: ", err)
	default:
	}
	close(goOn)
	harness.Check(t, <-closed)
	for _, c := range clients {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // for hangs only
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("it is not closed: %v", err)
		}
	}
}

// In every spelling and resolution.
func TestTheRelayDoesNotSendToItself(t *testing.T) {
	for _, host := range []string{"localhost", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "127.0.0.1"} {
		t.Run(host, func(t *testing.T) {
			r := start(t, Options{}, nil)
			_, port, _ := net.SplitHostPort(r.addr)
			for _, port := range []string{port, "0" + port} {
				harness.Check(t, r.SetUpstream(to(host+":"+port)))
				before := r.Counts()
				accepted(t, r.addr, encode(t, &tracepb.Span{Name: "x"}))
				harness.Until(t, "it was tried twice", func() bool { return r.Counts().Retries >= before.Retries+2 })
				if s := r.Counts(); s.Received != before.Received+1 || !strings.Contains(s.LastError, "is the relay itself") {
					t.Errorf("%+v", s)
				}
				harness.Check(t, r.SetUpstream(nil))
			}
		})
	}
}

// A loop over other relays ends by the header.
func TestALoopOverAnotherRelayEnds(t *testing.T) {
	first, second := start(t, Options{}, nil), start(t, Options{}, nil)
	harness.Check(t, first.SetUpstream(to(second.addr)))
	harness.Check(t, second.SetUpstream(to(first.addr)))
	accepted(t, first.addr, encode(t, &tracepb.Span{Name: "x"}))
	harness.Until(t, "the second has refused it", func() bool { return second.Counts().Looped == 1 })
	harness.Until(t, "it is given up", func() bool { return first.Counts().Dropped[queue.Rejected] == 1 })
	if s := second.Counts(); s.Received != 0 || first.Counts().Received != 1 {
		t.Errorf("%+v", s)
	}
	harness.Equal(t, post(t, first.addr, nil, marker+": 1"), http.StatusLoopDetected, "over HTTP it is answered")
}
