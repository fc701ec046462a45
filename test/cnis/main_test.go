//go:build linux

// Package cnis runs cniscope with real CNIs: Cilium with kube-proxy, Multus, Flannel, Calico, with etcd,
// kube-apiserver and containerd. Each test has a node in its own network and mount namespace and cgroup. Cilium's BPF
// maps are global, so its tests run one at a time. `make test-cilium test-cnis` runs them; `go test ./...` does not.
package cnis

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/scope"
	"github.com/cniscope/cniscope/test/tied"
)

const (
	wanted  = "CNISCOPE_CNIS"         // enables these tests
	inside  = "CNISCOPE_CNIS_PROGRAM" // the cniscope under test, inside a node's namespaces
	groupOf = "CNISCOPE_CNIS_GROUP"   // the node's cgroup
)

var program = os.Getenv(inside)

func TestMain(m *testing.M) {
	if program != "" || os.Getenv(wanted) == "" {
		os.Exit(m.Run())
	}
	os.Exit(scope.Main(m, &program))
}

// apart reruns the test in its own namespaces and cgroup, and reports whether this is the child.
func apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	if os.Getenv(wanted) == "" {
		t.Skip("runs for minutes, and alone on the machine: make test-cilium or test-cnis")
	}
	harness.Root(t)
	group, held := makeGroup(t)
	defer held.Close()
	defer group.remove(t)
	self := harness.Must(os.Executable())(t)
	cmd := exec.Command(self, "-test.v", "-test.run", "^"+t.Name()+"$")
	if deadline, is := t.Deadline(); is {
		cmd.Args = append(cmd.Args, "-test.timeout", fmt.Sprint(untilThen(deadline)))
	}
	cmd.Env = append(os.Environ(), inside+"="+program, groupOf+"="+filepath.Base(string(group)))
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWNET | unix.CLONE_NEWNS,
		UseCgroupFD: true, CgroupFD: int(held.Fd()),
	}
	harness.Check(t, tied.Start(cmd))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v", t.Name(), err)
	}
	return false
}

type cgroup string

const groups = "cniscope-cnis-"

// makeGroup returns a new group, which is its owner's while the file is open, and removes those without an owner. PIDs
// would not tell: an owner may be in another PID namespace.
func makeGroup(t *testing.T) (cgroup, *os.File) {
	t.Helper()
	top := harness.Unified(t)
	all := harness.Must(os.Open(top))(t)
	defer all.Close()
	harness.Check(t, unix.Flock(int(all.Fd()), unix.LOCK_EX))
	for _, dir := range harness.Must(filepath.Glob(filepath.Join(top, groups+"*")))(t) {
		held, err := os.Open(dir)
		if err == nil && unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			cgroup(dir).remove(t)
		}
		held.Close()
	}
	dir := harness.Must(os.MkdirTemp(top, groups))(t)
	held := harness.Must(os.Open(dir))(t)
	harness.Check(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
	return cgroup(dir), held
}

func TestAGroupStaysWhileItsOwnerLives(t *testing.T) {
	harness.Root(t)
	first, owner := makeGroup(t)
	second, other := makeGroup(t)
	defer other.Close()
	defer second.remove(t)
	harness.Check(t, owner.Close())
	third, one := makeGroup(t)
	defer one.Close()
	defer third.remove(t)
	for group, stays := range map[cgroup]bool{first: false, second: true, third: true} {
		_, err := os.Stat(string(group))
		harness.Equal(t, err == nil, stays, group)
	}
}

func (c cgroup) remove(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(string(c), "cgroup.kill"), []byte("1"), 0); err != nil {
		t.Error(err)
	}
	harness.Eventually(t, func() error {
		var dirs []string
		_ = filepath.WalkDir(string(c), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append([]string{path}, dirs...)
			}
			return nil
		})
		for _, dir := range dirs {
			if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		return nil
	})
}
