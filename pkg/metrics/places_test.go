package metrics

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

// hostile are ways to hold a connection for nothing.
var hostile = map[string]func(c *net.TCPConn){
	"silent": func(*net.TCPConn) {},
	"idle": func(c *net.TCPConn) {
		_ = ask(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		_, _ = c.Read(make([]byte, 512))
	},
	"slow":      func(c *net.TCPConn) { _ = ask(c, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ") },
	"half open": func(c *net.TCPConn) { _ = ask(c, "GET /healthz HTTP/1.1\r\n"); _ = c.CloseWrite() },
	"huge header": func(c *net.TCPConn) {
		_ = ask(c, "GET /healthz HTTP/1.1\r\nX-Huge: "+strings.Repeat("x", 2*headerBytesMax))
	},
	"keeps its body": func(c *net.TCPConn) { _ = ask(c, "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n") },
	"slow with a body": func(c *net.TCPConn) {
		_ = ask(c, "GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1")
	},
	"byte by byte": func(c *net.TCPConn) {
		_ = ask(c, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		again(func() bool { return ask(c, "x") == nil })
	},
	"asks without an end": func(c *net.TCPConn) {
		answer := make([]byte, 512)
		again(func() bool {
			if ask(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") != nil {
				return false
			}
			_, err := c.Read(answer)
			return err == nil
		})
	},
	"never takes its answers": func(c *net.TCPConn) {
		_ = c.SetReadBuffer(4096)
		_ = c.SetWriteDeadline(time.Now().Add(5 * time.Millisecond)) // it ends by being full
		_ = ask(c, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200))
	},
}

func ask(c net.Conn, text string) error {
	_, err := io.WriteString(c, text)
	return err
}

// again does something several times in each tenure, until it returns false.
func again(do func() bool) {
	go func() {
		for do() {
			time.Sleep(tenure / 3)
		}
	}()
}

// patient returns a server that waits for everybody for ever: only who gives way goes.
func patient(t *testing.T) *listening {
	t.Helper()
	ok := func() (string, bool) { return "ok", true }
	s, err := listen("127.0.0.1:0", "", Checks{ok, ok}.with(newTest(busy).Handler()), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.http.ReadHeaderTimeout, s.http.ReadTimeout, s.http.WriteTimeout, s.http.IdleTimeout = 0, 0, 0, 0
	go s.serve(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = s.http.Close() })
	return s
}

// The kubelet restarts a cniscope whose liveness it cannot ask for.
func TestLivenessIsAnsweredWhateverOthersHoldOpen(t *testing.T) {
	harness.Slow(t)
	const each = placesMax + 50
	for name, hold := range hostile {
		t.Run(name, func(t *testing.T) {
			s := patient(t)
			for range each {
				c, err := net.Dial("tcp", s.Address())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				hold(c.(*net.TCPConn))
			}
			if body := get(t, s, "/healthz"); body != "ok\n" {
				t.Errorf("/healthz: %q", body)
			}
			if body := get(t, s, "/metrics"); !strings.Contains(body, "cniscope_build_info") {
				t.Errorf("/metrics: %.100q", body)
			}
		})
	}
}

// get asks as a kubelet does, on a connection of its own, and again while too many others are
// being answered.
func get(t *testing.T, s interface{ Address() string }, path string) string {
	t.Helper()
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 1000 {
		answer, err := client.Get("http://" + s.Address() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		switch {
		case err != nil:
			t.Fatal(err)
		case answer.StatusCode == http.StatusOK:
			return string(body)
		case answer.StatusCode != http.StatusServiceUnavailable || path == "/healthz":
			t.Fatalf("%s: %s, %.100q", path, answer.Status, body)
		}
	}
	t.Fatal(path + " was never answered")
	return ""
}

// Whoever waits for us is not cut off for a newcomer, and whoever we wait for longest goes
// first.
func TestWhoWeWaitForLongestGivesWay(t *testing.T) {
	p, dial := listenPlaces(t)
	now := time.Now()
	var taken []*place
	for range placesMax {
		dial()
		c, err := p.Accept()
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, c.(*place)) // not read from yet
	}
	ago := func(d time.Duration) time.Time { return now.Add(-time.Hour - d) }
	for i, set := range []func(c *place){
		func(c *place) { c.reading = true; c.work() },
		func(c *place) { c.reading = true; c.work()() }, // its answer is not written yet
		func(c *place) { c.reading, c.since = true, ago(1) },
		func(c *place) { c.reading, c.since = true, ago(2) },
		func(c *place) { c.writing, c.since = true, ago(3); c.working++ },
		func(c *place) { c.parted = true },
	} {
		set(taken[i])
	}
	for _, want := range []int{5, 4, 3, 2} {
		victim, _, ok := p.room()
		if !ok || victim != taken[want] {
			t.Fatalf("not connection %d gives way: %v", want, ok)
		}
		*victim = place{TCPConn: victim.TCPConn, of: p}
	}
	if victim, wait, ok := p.room(); ok || wait <= 0 {
		t.Errorf("somebody who waits for us gives way: %v", victim)
	}
}

// A byte now and then, of a request or to make room for an answer, makes nobody wait less long.
func TestWhoIsSlowIsWaitedForFromTheBeginning(t *testing.T) {
	p, dial := listenPlaces(t)
	theirs := dial()
	accepted, err := p.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := accepted.(*place)
	began := c.since
	read := func() {
		t.Helper()
		if _, err := theirs.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if read(); !c.since.Equal(began) {
			t.Fatal("a byte is taken for a request")
		}
	}
	c.work()()
	write := func() {
		t.Helper()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	write()
	began = c.since
	for range 3 {
		if write(); !c.since.Equal(began) {
			t.Fatal("a part is taken for an answer")
		}
	}
	if read(); !c.since.After(began) {
		t.Error("the next request is taken for the one before")
	}
}

// Whoever asks again and again would never be waited for.
func TestWhileOthersWaitEachHasOneAnswer(t *testing.T) {
	s := patient(t)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	first := dial()
	ends := func() bool {
		t.Helper()
		_ = ask(first, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(first), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.Close
	}
	if ends() {
		t.Error("it ends, though nobody waits")
	}
	for range placesMax - 1 {
		dial()
	}
	harness.Until(t, "no place is left", s.listener.(*places).full)
	if !ends() {
		t.Error("it does not end")
	}
}

func TestNobodyWaitsForAPlaceOfAServerThatEnds(t *testing.T) {
	p, dial := listenPlaces(t)
	for range placesMax {
		dial()
		c, err := p.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.(*place).work() // for ever
	}
	dial()
	done := make(chan error)
	go func() {
		_, err := p.Accept()
		done <- err
	}()
	_ = p.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func listenPlaces(t *testing.T) (p *places, dial func() net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p = newPlaces(l.(*net.TCPListener))
	t.Cleanup(func() {
		_ = p.Close()
		for c := range p.taken {
			_ = c.Close()
		}
	})
	return p, func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}
