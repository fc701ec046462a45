package metrics

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// hostile are ways to hold a connection for nothing.
var hostile = map[string]func(c *net.TCPConn){
	"silent": func(*net.TCPConn) {},
	"idle": func(c *net.TCPConn) {
		ask(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		_, _ = c.Read(make([]byte, 512))
	},
	"slow":      func(c *net.TCPConn) { ask(c, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ") },
	"half open": func(c *net.TCPConn) { ask(c, "GET /healthz HTTP/1.1\r\n"); _ = c.CloseWrite() },
	"huge header": func(c *net.TCPConn) {
		ask(c, "GET /healthz HTTP/1.1\r\nX-Huge: "+strings.Repeat("x", 2*headerBytesMax))
	},
	"never takes its answers": func(c *net.TCPConn) {
		_ = c.SetReadBuffer(4096)
		_ = c.SetWriteDeadline(time.Now().Add(5 * time.Millisecond)) // it ends by being full
		ask(c, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200))
	},
}

func ask(c net.Conn, text string) { _, _ = io.WriteString(c, text) }

// The kubelet restarts a cniscope whose liveness it cannot ask for.
func TestLivenessIsAnsweredWhateverOthersHoldOpen(t *testing.T) {
	const each = placesMax + 50
	for name, hold := range hostile {
		t.Run(name, func(t *testing.T) {
			s := serve(t, true)
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
func get(t *testing.T, s *Server, path string) string {
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
		func(c *place) { c.reading = ago(9); c.work() },
		func(c *place) { c.reading = ago(8); c.work()() }, // its answer is not written yet
		func(c *place) { c.reading = ago(1) },
		func(c *place) { c.reading = ago(2) },
		func(c *place) { c.writing = ago(3); c.working++ },
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

func listenPlaces(t *testing.T) (p *places, dial func()) {
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
	return p, func() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
}
