package nri

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

// A burst asks for each pod, and reading the descriptors of all processes costs tens of milliseconds.
func TestOtherNRIPluginsAreSearchedOnce(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nri-of-a-test.sock")
	listener := harness.Must(net.Listen("unix", socket))(t)
	defer listener.Close()
	connect := func(listener net.Listener) (plugin *os.File, runtime net.Conn) {
		conn := harness.Must(net.Dial("unix", listener.Addr().String()))(t)
		defer conn.Close()
		file := harness.Must(conn.(*net.UnixConn).File())(t)
		accepted := harness.Must(listener.Accept())(t)
		t.Cleanup(func() { accepted.Close() })
		return file, accepted
	}
	searches := 0
	n := NewSearch(socket)
	n.max = time.Hour // of a busy machine, too
	n.pids = func() ([]int, error) { searches++; return procfs.All() }
	self, _ := connect(listener)
	defer self.Close()
	for range 3 {
		if found, ok := n.List(os.Getpid()); !ok || len(found) != 0 || searches != 1 {
			t.Fatalf("alone: %v after %d searches", found, searches)
		}
	}
	other, _ := connect(listener)
	plugin := exec.Command("sleep", "1000")
	plugin.ExtraFiles = []*os.File{other}
	harness.Check(t, plugin.Start())
	harness.Check(t, other.Close())
	for range 3 {
		if found, ok := n.List(os.Getpid()); !ok || len(found) != 1 || int(found[0].PID) != plugin.Process.Pid || searches != 2 {
			t.Errorf("beside another: %v after %d searches", found, searches)
		}
	}
	theirs := harness.Must(net.Listen("unix", filepath.Join(t.TempDir(), filepath.Base(socket))))(t)
	defer theirs.Close()
	client, accepted := connect(theirs)
	server := harness.Must(accepted.(*net.UnixConn).File())(t)
	tenant := exec.Command("sleep", "1000")
	tenant.ExtraFiles = []*os.File{client, server}
	harness.Start(t, tenant)
	harness.Check(t, errors.Join(client.Close(), server.Close(), accepted.Close()))
	if found, ok := n.List(os.Getpid()); !ok || len(found) != 1 || int(found[0].PID) != plugin.Process.Pid {
		t.Errorf("beside a tenant's socket: %v", found)
	}
	harness.Check(t, plugin.Process.Kill())
	_ = plugin.Wait()
	if found, ok := n.List(os.Getpid()); !ok || len(found) != 0 || searches != 3 {
		t.Errorf("alone again: %v after %d searches", found, searches)
	}
}

// A tenant's many descriptors would last longer than a search may.
func TestManyDescriptorsAreExaminedLast(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nri-of-a-test.sock")
	listener := harness.Must(net.Listen("unix", socket))(t)
	defer listener.Close()
	conn := harness.Must(net.Dial("unix", socket))(t)
	accepted := harness.Must(listener.Accept())(t)
	defer accepted.Close()
	file := harness.Must(conn.(*net.UnixConn).File())(t)
	harness.Check(t, conn.Close())
	again := harness.Must(net.Dial("unix", socket))(t)
	defer harness.Must(listener.Accept())(t).Close()
	second := harness.Must(again.(*net.UnixConn).File())(t)
	harness.Check(t, again.Close())
	null := harness.Must(os.Open(os.DevNull))(t)
	defer null.Close()
	many, few := exec.Command("sleep", "1000"), exec.Command("sleep", "1000")
	many.ExtraFiles, few.ExtraFiles = append(slices.Repeat([]*os.File{null}, descriptorsFirst), file), []*os.File{file}
	both := exec.Command("sleep", "1000") // of one plugin
	both.ExtraFiles = []*os.File{file, second}
	for _, cmd := range []*exec.Cmd{many, few, both} {
		harness.Start(t, cmd)
	}
	harness.Check(t, errors.Join(file.Close(), second.Close()))
	for _, only := range [][]*exec.Cmd{{many, few}, {many}, {both}} {
		n := NewSearch(socket)
		n.max = time.Hour
		n.pids = func() (pids []int, _ error) {
			for _, cmd := range only {
				pids = append(pids, cmd.Process.Pid)
			}
			return append(pids, os.Getpid()), nil
		}
		want := only[len(only)-1].Process.Pid
		if found, ok := n.List(os.Getpid()); !ok || len(found) != 1 || int(found[0].PID) != want {
			t.Errorf("of %d processes: %v, want %d", len(only), found, want)
		}
	}
}

func TestASearchThatLastsTooLongIsNotRepeatedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		searches := 0
		n := NewSearch("nri.sock")
		n.pids = func() ([]int, error) {
			searches++
			time.Sleep(2 * n.max)
			return []int{os.Getpid()}, nil
		}
		for _, want := range []int{1, 2, 2, 3} {
			if found, ok := n.List(os.Getpid()); ok {
				t.Errorf("found %v", found)
			}
			harness.Equal(t, searches, want, "searches")
			time.Sleep(n.max)
		}
	})
}

// A runtime that cut a plugin off has closed its end, also if the plugin runs on.
func TestAPreinstalledPluginThatWasCutOffIsNotListed(t *testing.T) {
	pair := harness.Must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
	runtime, theirs := os.NewFile(uintptr(pair[0]), "runtime"), os.NewFile(uintptr(pair[1]), "plugin")
	plugin := exec.Command("sleep", "1000")
	plugin.Env, plugin.ExtraFiles = []string{"NRI_PLUGIN_NAME=napper"}, []*os.File{theirs}
	harness.Start(t, plugin)
	harness.Check(t, theirs.Close())
	n := NewSearch("nri.sock")
	n.max = time.Hour
	if found, ok := n.List(os.Getpid()); !ok || len(found) != 1 || found[0].Name != "napper" {
		t.Errorf("connected: %v", found)
	}
	harness.Check(t, runtime.Close())
	if found, ok := n.List(os.Getpid()); !ok || len(found) != 0 {
		t.Errorf("cut off: %v", found)
	}
}
