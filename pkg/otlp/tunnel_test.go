package otlp

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
)

// proxied returns the environment's proxy. ended receives when one of its connections has ended.
func proxied(t *testing.T, proxy func(c net.Conn, asked *http.Request)) (at *url.URL, ended chan struct{}) {
	t.Helper()
	l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	ended = make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close(); ended <- struct{}{} }()
				if asked, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					proxy(c, asked)
				}
			}()
		}
	}()
	at = &url.URL{Scheme: "http", User: url.UserPassword("user", "pass"), Host: l.Addr().String()}
	t.Setenv("HTTPS_PROXY", at.String())
	t.Setenv("NO_PROXY", "")
	return at, ended
}

const far = "otlp.example.com:4317"

func TestSpansGoThroughTheProxy(t *testing.T) {
	ca := harness.Must(harness.NewAuthority())(t)
	pair := harness.Must(ca.Issue("server", time.Hour))(t)
	collector := collect(t, "", &otlptest.Collector{}, &tls.Config{Certificates: []tls.Certificate{pair}})
	proxied(t, func(c net.Conn, asked *http.Request) {
		if asked.Method != http.MethodConnect || asked.Host != far ||
			asked.Header.Get("Proxy-Authorization") != "Basic dXNlcjpwYXNz" {
			t.Errorf("%s %s %v", asked.Method, asked.Host, asked.Header)
		}
		to := harness.Must(net.Dial("tcp", collector.Addr))(t)
		defer to.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() { _, _ = io.Copy(to, c) }()
		_, _ = io.Copy(c, to)
	})
	e := newClient(t, Options{Endpoint: far, TLS: &tls.Config{RootCAs: ca.Pool(), ServerName: "127.0.0.1"}})
	harness.Check(t, e.Send(t.Context(), spans(t)))
	harness.Equal(t, len(collector.Got()), 1, "requests")
}

// Before: gRPC waited for a silent proxy until a restart, and held all that another one answered.
func TestAProxyIsNotWaitedForWithoutEnd(t *testing.T) {
	endless := func(c net.Conn, head string) {
		_, err := io.WriteString(c, head)
		for chunk := strings.Repeat("x", 64<<10); err == nil; {
			_, err = io.WriteString(c, chunk)
		}
	}
	for name, proxy := range map[string]func(c net.Conn){
		"the proxy does not answer":           func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"the proxy answered HTTP 500 no":      func(c net.Conn) { endless(c, "HTTP/1.1 500 no\r\n\r\n") },
		"read the proxy's answer":             func(c net.Conn) { endless(c, "HTTP/1.1 200 OK\r\nX: ") },
		"the proxy sent more than its answer": func(c net.Conn) { endless(c, "HTTP/1.1 200 OK\r\n\r\nmore") },
	} {
		t.Run(name, func(t *testing.T) {
			at, ended := proxied(t, func(c net.Conn, _ *http.Request) { proxy(c) })
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if strings.HasSuffix(name, "not answer") {
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
			}
			if _, err := tunnel(ctx, at, far); err == nil || !strings.Contains(err.Error(), name) {
				t.Error(err)
			}
			<-ended
		})
	}
}
