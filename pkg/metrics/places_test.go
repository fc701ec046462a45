package metrics

import (
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func ask(c net.Conn, text string) error {
	_, err := io.WriteString(c, text)
	return err
}

// patient returns a server without timeouts.
func patient(t *testing.T) *listening {
	t.Helper()
	ok := func() (string, bool) { return "ok", true }
	h := Checks{ok, ok}.with(newTest(busy).Handler())
	s := harness.Must(listen(Where{Listen: "127.0.0.1:0"}, h, slog.New(slog.DiscardHandler)))(t)
	s.http.ReadHeaderTimeout, s.http.ReadTimeout, s.http.WriteTimeout = 0, 0, 0
	go s.serve(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = s.http.Close() })
	return s
}

// The oldest connection that does not wait for the server is closed.
func TestWhoGivesWay(t *testing.T) {
	p, dial := listenPlaces(t)
	var all []*place
	var far []net.Conn
	for range placesMax {
		far = append(far, dial())
		c := harness.Must(p.Accept())(t)
		all = append(all, c.(*place))
	}
	begins := time.Now().Add(-time.Hour)
	for i, c := range all {
		c.since = begins.Add(time.Duration(i))
	}
	speak := func(i int) {
		harness.Check(t, ask(far[i], "x"))
	}
	all[0].becomes(working)
	speak(1) // unread
	speak(3)
	all[3].becomes(leaving)
	const answered = 5
	all[answered].becomes(working)
	all[answered].becomes(leaving) // starts a new tenure
	harness.Until(t, "what was sent has come", func() bool { return unread(all[1].TCPConn) && unread(all[3].TCPConn) })
	for _, want := range []int{2, 3, 4, 6, 7} {
		if !p.room(time.Now()) || slices.Contains(p.open, all[want]) || len(p.open) != placesMax-1 {
			t.Fatalf("not connection %d gave way", want)
		}
		p.open = append(p.open, &place{TCPConn: all[0].TCPConn, of: p, since: time.Now()})
	}
	if p.room(begins.Add(tenure)) {
		t.Error("one gave way before its time")
	}
	_ = all[0].Close()
	if !p.room(begins) || slices.Contains(p.open, all[0]) {
		t.Error("who has gone keeps a place")
	}
}

// One answer per connection, however often the client asks.
func TestAConnectionHasOneAnswer(t *testing.T) {
	s := patient(t)
	for name, text := range map[string]string{
		"pipelining":       strings.Repeat("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 100),
		"alternating":      "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
		"HTTP/1.0":         strings.Repeat("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 2),
		"HEAD":             strings.Repeat("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 2),
		"OPTIONS":          strings.Repeat("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 2),
		"nothing is there": strings.Repeat("GET /x HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n", 2),
		"with a body": "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n1234GET /healthz " +
			"HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := harness.Must(net.Dial("tcp", s.Address()))(t)
			defer c.Close()
			harness.Check(t, ask(c, text))
			_ = c.(*net.TCPConn).CloseWrite()
			answers, _ := io.ReadAll(c) // may end in a reset
			harness.Equal(t, strings.Count(string(answers), "HTTP/1."), 1, "answers")
		})
	}
}

func listenPlaces(t *testing.T) (p *places, dial func() net.Conn) {
	t.Helper()
	l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	p = &places{listener: l.(*net.TCPListener)}
	t.Cleanup(func() {
		_ = p.Close()
		for _, c := range p.open {
			_ = c.TCPConn.Close()
		}
	})
	return p, func() net.Conn {
		c := harness.Must(net.Dial("tcp", l.Addr().String()))(t)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}
