//go:build linux

package scenarios

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// askAPIServer queries a fast fake API server with pauses, like a rate-limited client.
func askAPIServer() error {
	for range 4 {
		c, err := net.Dial("tcp", apiServer)
		if err == nil {
			_, err = io.ReadAll(c)
			err = errors.Join(err, c.Close())
		}
		if err != nil {
			return err
		}
		time.Sleep(300 * time.Millisecond)
	}
	return nil
}

// beingWritten keeps a plugin's file open for writing, so that it cannot be executed (ETXTBSY).
func beingWritten(name string) func(*scene, rig.Net) func() {
	return func(s *scene, _ rig.Net) func() {
		f, err := os.OpenFile(filepath.Join(s.rig.CNIBinDir(), name), os.O_WRONLY, 0)
		harness.Check(s.T, err)
		return func() { harness.Check(s.T, f.Close()) }
	}
}

// without takes a plugin out of the directory.
func without(name string) func(*scene, rig.Net) func() {
	return func(s *scene, _ rig.Net) func() {
		path := filepath.Join(s.rig.CNIBinDir(), name)
		harness.Check(s.T, os.Rename(path, path+".away"))
		return func() { harness.Check(s.T, os.Rename(path+".away", path)) }
	}
}

// Cases of public reports without another scenario, each with a control.
func TestDemands(t *testing.T) {
	s := set(t, rig.Options{Plugins: map[string][]byte{
		"mute":    rig.Script(`[ "$CNI_COMMAND" = ADD ] && exit 3`),
		"written": rig.Script(`:`),
	}}, slowly)
	idle := []rig.Plugin{rig.Bridge(), rig.Test("idler")}
	for number, c := range []judged{{
		name: "no error message", control: idle, chain: []rig.Plugin{rig.Bridge(), rig.Test("mute")}, fails: true,
		cause: "plugin_error", says: `^plugin mute exited 3`,
	}, {
		name: "a client's own rate limiter", control: idle, chain: []rig.Plugin{rig.Bridge(), rig.Test("limited"), rig.Test("idler")}, before: answeringAPIServer(0, "ok"),
		cause: "sleep", says: `plugin limited slept`,
	}, {
		name: "text file busy", control: []rig.Plugin{rig.Bridge(), rig.Test("written")}, before: beingWritten("written"), fails: true,
		cause: "runtime", says: `^plugin written did not run, though its program can start`,
	}, {
		name: "no loopback", control: []rig.Plugin{rig.Bridge()}, before: without("loopback"), fails: true,
		cause: "missing_plugin", says: `^plugin "loopback" cannot start: it is not in `, report: "containerd/containerd#8419",
	}} {
		t.Run(c.name, func(t *testing.T) {
			s := *s
			s.T, s.pods = t, 100*(number+1)
			s.judge(c)
		})
	}
}
