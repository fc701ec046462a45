//go:build linux

package scenarios

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cniscope/cniscope/test/rig"
)

// taken has forty thousand addresses of a network in use.
func taken(s *scene, n rig.Net) func() {
	dir := filepath.Join(n.DataDir, n.Name)
	check(s.T, os.MkdirAll(dir, 0o755))
	for i := range 40_000 {
		name := filepath.Join(dir, fmt.Sprintf("10.%d.%d.%d", 200+i>>16, i>>8&255, i&255))
		check(s.T, os.WriteFile(name, []byte("somebody\r\neth0"), 0o600))
	}
	return func() { check(s.T, os.RemoveAll(dir)) }
}

// slowAPIServer takes half a second for each connection.
func slowAPIServer(s *scene, _ rig.Net) func() {
	l, err := net.Listen("tcp", apiServer)
	check(s.T, err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			time.AfterFunc(500*time.Millisecond, func() { c.Close() })
		}
	}()
	return func() { l.Close() }
}

// busyAgent answers 429, after a while.
func busyAgent(s *scene, _ rig.Net) func() {
	check(s.T, os.MkdirAll(filepath.Dir(ciliumSocket), 0o755))
	_ = os.Remove(ciliumSocket)
	l, err := net.Listen("unix", ciliumSocket)
	check(s.T, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(200 * time.Millisecond)
		w.WriteHeader(http.StatusTooManyRequests)
	})}
	go func() { _ = server.Serve(l) }()
	return func() { server.Close() }
}

// writesMeanwhile writes to the CNI folder when the next call is under way.
func writesMeanwhile(s *scene, _ rig.Net) func() {
	timer := time.AfterFunc(800*time.Millisecond, func() {
		_ = os.WriteFile(filepath.Join(s.rig.CNIConfDir(), "99-other.conflist"), []byte(`{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"idler"}]}`), 0o600)
	})
	return func() {
		timer.Stop()
		_ = os.Remove(filepath.Join(s.rig.CNIConfDir(), "99-other.conflist"))
	}
}

// crowd has the first CPU to itself, six times over.
func crowd(*scene, rig.Net) func() {
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for ctx.Err() == nil {
				_ = share(0, 10*time.Millisecond)
			}
		})
	}
	return func() { stop(); all.Wait() }
}
