package metrics

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/test/harness"
)

// A scraper has its turn soon after all strangers of another user that may wait, who connected before it and say nothing.
func TestAScraperAmongStrangersThatConnect(t *testing.T) {
	harness.Root(t)
	const strangers = waitingMax + 50
	l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	q := newTurnstile(l.(*net.TCPListener), Where{User: peer.UID}.source)
	defer q.Close()
	var refused atomic.Int32
	for _, c := range dialAs(t, 65534, strangers, l.Addr().String()) {
		go func() {
			_, _ = c.Read(make([]byte, 1))
			refused.Add(1)
		}()
	}
	untilRefused := func(n int32) {
		t.Helper()
		harness.Until(t, "all have come", func() bool { return refused.Load() == n })
	}
	untilRefused(strangers - waitingMax - 1) // the first has its turn
	scraper := dialAs(t, 0, 1, l.Addr().String())[0]
	untilRefused(strangers - waitingMax)
	for n := 1; ; n++ {
		c := harness.Must(q.AcceptTCP())(t)
		defer c.Close()
		if c.RemoteAddr().String() == scraper.LocalAddr().String() {
			return
		}
		if n == 100 {
			t.Fatal("100 strangers had their turns first")
		}
	}
}

// A password waits for its turn as the user who sent it.
func TestAPasswordIsOfAUser(t *testing.T) {
	harness.Root(t)
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.MinCost)
	harness.Check(t, err)
	path := filepath.Join(t.TempDir(), "web.yml")
	harness.Check(t, os.WriteFile(path, []byte("basic_auth_users:\n  prometheus: "+string(hash)+"\n"), 0o600))
	users := make(chan uint32, 1)
	where := Where{Listen: "127.0.0.1:0", WebConfig: path, User: func(c *net.TCPConn) (uint32, bool) {
		uid, ok := peer.UID(c)
		users <- uid
		return uid, ok
	}}
	s := harness.Must(Serve(where, http.NotFoundHandler(), Checks{}, slog.New(slog.DiscardHandler)))(t)
	defer func() { _ = s.Close(context.Background()) }()
	stranger := dialAs(t, 65534, 1, s.Address())[0]
	_, err = io.WriteString(stranger, "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic eDp4\r\n\r\n")
	harness.Check(t, err)
	_, err = io.ReadAll(stranger)
	harness.Check(t, err)
	select {
	case uid := <-users:
		harness.Equal(t, uid, 65534, "it waited as user")
	default:
		t.Error("it waited with all of its network")
	}
}

// dialAs connects a number of times as a user.
func dialAs(t *testing.T, uid, times int, address string) (all []net.Conn) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // stays locked, so that the thread ends
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
		var err error
		for len(all) < times && err == nil {
			var c net.Conn
			if c, err = net.Dial("tcp", address); err == nil {
				all = append(all, c)
			}
		}
		done <- err
	}()
	harness.Check(t, <-done)
	t.Cleanup(func() {
		for _, c := range all {
			_ = c.Close()
		}
	})
	return all
}
