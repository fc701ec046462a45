//go:build linux

package standin

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/tied"
)

// until polls for up to a minute.
func until(what string, holds func() bool) error {
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("never happened: %s", what)
		}
	}
	return nil
}

func (n *Node) kill(in Injection) (func() error, error) {
	n.mu.Lock()
	p := n.programs[in.Of]
	n.mu.Unlock()
	if err := p.cmd.Process.Kill(); err != nil {
		return nil, err
	}
	return nil, until(in.Of+" is over", func() bool { s := stateIn(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid)); return s == "" || s == "Z" })
}

func (n *Node) restart(in Injection) (func() error, error) {
	if _, err := n.kill(in); err != nil {
		return nil, err
	}
	return func() error {
		_, err := n.launch(in.Of)
		return err
	}, nil
}

func (n *Node) lockStore(Injection) (func() error, error) {
	f, err := os.OpenFile(filepath.Join(n.Dir, "store.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return f.Close, unix.Flock(int(f.Fd()), unix.LOCK_EX)
}

func (n *Node) lockKernel(in Injection) (func() error, error) {
	return HoldRtnl(filepath.Join(n.Dir, "bin"), in.For)
}

// HoldRtnl holds the kernel's network lock for a duration and returns once it is held; the function waits for the
// release. The holder is this program by another name in dir: its main must call Main.
func HoldRtnl(dir string, length time.Duration) (wait func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, rtnlName)
	if err := os.Symlink(self, file); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	cmd := exec.Command(file, length.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := tied.Start(cmd); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, errors.Join(err, cmd.Wait())
	}
	return cmd.Wait, nil
}

func leave(group, to string) error {
	return until("cgroup "+group+" is removed", func() bool {
		inside, _ := os.ReadFile(group + "/cgroup.procs")
		for pid := range strings.FieldsSeq(string(inside)) {
			_ = put(to+"/cgroup.procs", pid) // fails for an exited process
		}
		err := unix.Rmdir(group)
		return err == nil || errors.Is(err, unix.ENOENT)
	})
}

// limitMemory bounds the agent's memory; the kernel kills it beyond that.
func (n *Node) limitMemory(pid int) error {
	const all, limit = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(all); err != nil {
		n.Skip("no cgroups of version 1 for memory")
	}
	group, err := os.MkdirTemp(all, groupPattern)
	if err != nil {
		return err
	}
	n.Cleanup(func() { harness.Check(n, leave(group, all)) })
	return errors.Join(put(filepath.Join(group, limit), strconv.FormatInt(n.o.Memory, 10)), put(group+"/cgroup.procs", strconv.Itoa(pid)))
}

// MountDisk gives a directory a file system of its own, disk.
func MountDisk(n testing.TB, in string) {
	image, dir := filepath.Join(in, "disk.img"), filepath.Join(in, "disk")
	f := harness.Must(os.Create(image))(n)
	harness.Check(n, errors.Join(f.Truncate(16<<20), f.Close(), os.Mkdir(dir, 0o755)))
	for _, line := range [][]string{{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			n.Skipf("no file system to freeze: %s: %v\n%s", line[0], err, out)
		}
	}
	n.Cleanup(func() { harness.Check(n, unix.Unmount(dir, 0)) })
}

func (n *Node) freezeDisk(Injection) (func() error, error) {
	return Freeze(filepath.Join(n.Dir, "disk"))
}

// Freeze freezes a file system until its end.
func Freeze(path string) (end func() error, err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	const freeze, thaw = 0xc0045877, 0xc0045878 // FIFREEZE, FITHAW (include/uapi/linux/fs.h)
	request := func(what uintptr) error {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, dir.Fd(), what, 0); errno != 0 {
			return errno
		}
		return nil
	}
	return func() error { return errors.Join(request(thaw), dir.Close()) }, request(freeze)
}
