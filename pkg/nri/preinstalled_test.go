//go:build linux

package nri

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/containerd/nri/pkg/api"
	nrinet "github.com/containerd/nri/pkg/net"

	"github.com/cniscope/cniscope/test/harness"
)

func install(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	self := harness.Must(os.Executable())(t)
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "plugins"), 0o700),
		os.Mkdir(filepath.Join(dir, "conf.d"), 0o700),
		os.WriteFile(filepath.Join(dir, "conf.d", "42-cniscope.conf"), []byte("[slow]\n"), 0o600),
		os.Symlink(self, filepath.Join(dir, "plugins", "42-cniscope")),
	} {
		harness.Check(t, err)
	}
	return dir
}

func TestPreinstalled(t *testing.T) {
	dir := install(t)
	runtime := startProcess(t, dir)
	runtime.run("1")
	want := []string{"present present", "running 1"}
	harness.Until(t, "the pod recorded", func() bool { return slices.Equal(phases(recorded(dir)), want) })
	harness.Until(t, "the configuration received", func() bool { return content(dir, "configured") == "[slow]\n" })
	if early := content(dir, "ended"); early != "" {
		t.Fatalf("ended while the runtime lived: %s", early)
	}
	runtime.kill()
	harness.Until(t, "the plugin's end", func() bool { return content(dir, "ended") != "" })
	if err := content(dir, "ended"); err != ErrRuntimeGone.Error() {
		t.Fatalf("ended by %s", err)
	}
}

func TestCutOffPreinstalledComesBack(t *testing.T) {
	dir := install(t)
	pair := harness.Must(nrinet.NewSocketPair())(t)
	ours := harness.Must(pair.LocalConn())(t)
	cmd := exec.Command(filepath.Join(dir, "plugins", "42-cniscope"))
	cmd.Env = []string{api.PluginNameEnvVar + "=cniscope", api.PluginIdxEnvVar + "=42", api.PluginSocketEnvVar + "=3"}
	cmd.ExtraFiles = []*os.File{pair.PeerFile()}
	harness.Start(t, cmd)
	pair.PeerClose()

	names := make(chan string, 1)
	listen(t, dir, func(c net.Conn) {
		r := speak(t, c)
		name := <-r.registered
		r.registered <- name
		if _, err := r.complete("", pod("later")); err != nil {
			t.Error(err)
		}
		if _, err := r.plugin.StateChange(context.Background(),
			&api.StateChangeEvent{Event: api.Event_STOP_POD_SANDBOX, Pod: pod("later")}); err != nil {
			t.Error(err)
		}
		names <- name
	})

	inherited := speak(t, ours)
	if _, err := inherited.complete("", pod("first")); err != nil {
		t.Fatal(err)
	}
	inherited.mux.Close()
	harness.Equal(t, <-names, "42-cniscope", "came back as")
	harness.Until(t, "all recorded", func() bool {
		all := phases(recorded(dir))
		slices.Sort(all)
		return slices.Equal(all, []string{"degraded", "present first", "present later", "restored", "stopped later"})
	})
	if early := content(dir, "ended"); early != "" {
		t.Fatalf("ended while the runtime lived: %s", early)
	}
}

func TestInheritedSocketIsChecked(t *testing.T) {
	file := harness.Must(os.Open(os.DevNull))(t)
	defer file.Close()
	for _, value := range []string{"", "x", "-1", "2", "65000", "99999999999"} {
		if c, err := fromEnvironment(value); err == nil {
			c.Close()
			t.Errorf("%q is taken for a socket", value)
		}
	}
}
