//go:build linux

package neighbours

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/cniscope/cniscope/test/harness"
)

const (
	// mannerVariable selects the behavior of a child of the test. The child's argument is the address.
	mannerVariable = "CNISCOPE_TEST_MANNER"
	stranger       = 65534
	sockets        = 4000
	guessing       = 40
)

var besiegers = map[string]func(address string){
	"pipelining": crowd(sockets, 1, func(c net.Conn) {
		text := strings.Repeat("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 100)
		for send(c, text) {
		}
	}),
	"pipelining old HTTP, from everywhere": crowd(sockets, 250, func(c net.Conn) {
		for send(c, "GET /metrics HTTP/1.0\r\nConnection: keep-alive\r\n\r\nHEAD /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n") {
			_, _ = c.Read(make([]byte, 1)) // a byte at a time
		}
	}),
	"dripping": crowd(sockets, 1, func(c net.Conn) {
		for more := send(c, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "); more; more = send(c, "x") {
			time.Sleep(time.Second)
		}
	}),
	"half open": crowd(sockets, 1, func(c net.Conn) {
		_ = send(c, "GET /healthz HTTP/1.1\r\n") && c.(*net.TCPConn).CloseWrite() == nil
		_, _ = io.Copy(io.Discard, c)
	}),
	"promising": crowd(sockets, 1, func(c net.Conn) {
		_ = send(c, "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx")
		_, _ = io.Copy(io.Discard, c)
	}),
	"connecting": crowd(sockets, 250, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }),
	"beginning a handshake": crowd(sockets, 1, func(c net.Conn) {
		_ = send(c, "\x16\x03\x01\x02\x00\x01") // the header of a ClientHello
		_, _ = io.Copy(io.Discard, c)
	}),
	"guessing": crowd(guessing, 1, func(c net.Conn) {
		guess := base64.StdEncoding.EncodeToString([]byte("prometheus:" + c.LocalAddr().String() + time.Now().String()))
		_ = send(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic "+guess+"\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
	}),
}

func send(c net.Conn, text string) bool {
	_, err := io.WriteString(c, text)
	return err == nil
}

// crowd holds connections from a number of loopback addresses. It connects again after each disconnect.
func crowd(size, addresses int, hold func(c net.Conn)) func(address string) {
	return func(address string) {
		for i := range size {
			from := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%addresses))}}
			go func() {
				for {
					if c, err := from.Dial("tcp", address); err == nil {
						hold(c)
						_ = c.Close()
					}
					time.Sleep(500 * time.Millisecond) // the test is not about CPU
				}
			}()
		}
		select {}
	}
}

// besieged starts the attackers as another user, with a low priority.
func besieged(t *testing.T, manner, address string) (leave func()) {
	t.Helper()
	strangers := exec.Command("/proc/self/exe", address) // the other user may not reach the path
	strangers.Env = append(os.Environ(), mannerVariable+"="+manner)
	strangers.Stderr = os.Stderr
	strangers.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	harness.Check(t, strangers.Start())
	leave = func() {
		_ = strangers.Process.Kill()
		_ = strangers.Wait()
	}
	t.Cleanup(leave)
	harness.Check(t, syscall.Setpriority(syscall.PRIO_PGRP, strangers.Process.Pid, 10))
	return leave
}

// A kubelet's probe succeeds during each attack on its address.
func TestLivenessAmongStrangers(t *testing.T) {
	lasts := lasting(t)
	n := newNode(t, "", "")
	for manner := range besiegers {
		if manner == "guessing" {
			continue
		}
		t.Log(manner)
		leave := besieged(t, manner, n.metrics)
		ctx, stop := context.WithTimeout(n.ctx, lasts/time.Duration(len(besiegers)-1))
		n.live(ctx)
		stop()
		leave()
		n.lived(n.scope.PID())
	}
}

// A scraper with the password succeeds while others guess passwords, also after a restart of cniscope.
func TestAScraperAmongGuessers(t *testing.T) {
	lasting(t)
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), 10) // the cost in docs/metrics.md
	harness.Check(t, err)
	path := filepath.Join(t.TempDir(), "web.yml")
	harness.Check(t, os.WriteFile(path, fmt.Appendf(nil, "basic_auth_users:\n  near: %s\n  far: %s\n", hash, hash), 0o600))
	_, port, err := net.SplitHostPort(harness.Address(t))
	harness.Check(t, err)
	n := newNode(t, "", fmt.Sprintf("listen = \":%s\"\nweb_config = %q\n", port, path))
	besieged(t, "guessing", net.JoinHostPort("127.0.0.1", port))
	for _, when := range []string{"before", "after"} {
		time.Sleep(2 * time.Second)
		for user, address := range map[string]string{"far": "::1", "near": "127.0.0.1"} {
			client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			took, err := ask(&client, fmt.Sprintf("http://%s:right@%s/metrics", user, net.JoinHostPort(address, port)))
			t.Logf("%s a restart, from %s: %s, %v", when, address, took, err)
			if err != nil {
				t.Errorf("%s a restart, from %s: it was not let in within 10s: %v", when, address, err)
			}
		}
		if when == "before" {
			harness.Check(t, n.scope.Stop())
			n.start()
		}
	}
}

// A scraper with the password succeeds over TLS while another user connects all the time and finishes no handshake.
func TestAScraperAmongHandshakes(t *testing.T) {
	lasting(t)
	dir := t.TempDir()
	authority := harness.Must(harness.NewAuthority())(t)
	pair := harness.Must(authority.Issue("cniscope", time.Hour))(t)
	harness.Check(t, harness.WritePEM(dir, "tls", pair))
	hash := harness.Must(bcrypt.GenerateFromPassword([]byte("right"), 10))(t)
	path := filepath.Join(dir, "web.yml")
	harness.Check(t, os.WriteFile(path, fmt.Appendf(nil,
		"tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\nbasic_auth_users:\n  near: %s\n", hash), 0o600))
	_, port, err := net.SplitHostPort(harness.Address(t))
	harness.Check(t, err)
	n := newNode(t, "", fmt.Sprintf("listen = \":%s\"\nweb_config = %q\n", port, path))
	for _, manner := range []string{"connecting", "beginning a handshake"} {
		leave := besieged(t, manner, net.JoinHostPort("127.0.0.1", port))
		time.Sleep(2 * time.Second)
		for range 10 {
			client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
				DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS12},
			}}
			took, err := ask(&client, fmt.Sprintf("https://near:right@%s/metrics", net.JoinHostPort("127.0.0.1", port)))
			t.Logf("%s: %s, %v", manner, took, err)
			if err != nil {
				t.Errorf("among 4000 sockets, %s: it was not let in within 10s: %v", manner, err)
			}
		}
		leave()
	}
	n.lived(n.scope.PID())
}
