package install

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/disk"
	"github.com/cniscope/cniscope/test/harness"
)

func TestAFailedStepUndoesTheOthers(t *testing.T) {
	files := map[string]string{"/etc/containerd/config.toml": config17}
	change := both(version("1.7"), edit)
	steps := len(newNode(t, files).plan(change).changes)
	for i := range steps {
		n := newNode(t, files)
		p := n.plan(change)
		// Another program changed it.
		p.changes[i].before = &content{data: []byte("what is not there")}
		before := n.tree()
		if _, err := p.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s: %v", p.changes[i].path, err)
		}
		n.same(before)
	}
	for i := range steps {
		n := newNode(t, files)
		n.install(change)
		before := n.tree()
		p := harness.Must(NewRemoval(Options{Root: n.root}, false))(t)
		if i >= len(p.changes) {
			continue
		}
		p.changes[i].before = &content{data: []byte("what is not there")}
		if _, err := p.Apply(t.Context()); err == nil {
			t.Errorf("%s was removed", p.changes[i].path)
		}
		n.same(before)
	}
}

// The next installation or removal recovers.
func TestACrashInTheMiddle(t *testing.T) {
	files := map[string]string{"/etc/containerd/config.toml": config17}
	change := both(version("1.7"), edit)
	steps := len(newNode(t, files).plan(change).changes)
	for done := range steps + 1 {
		for _, again := range []bool{true, false} {
			n := newNode(t, files)
			before := n.tree()
			p := n.plan(change)
			_, err := begin(disk.System(), p.changes[:done]) // never ended
			harness.Check(t, err)
			if again {
				n.install(change)
			}
			if _, err := NewRemoval(Options{Root: n.root}, false); err == nil {
				n.uninstall(false)
			} else if done > 1 {
				t.Errorf("after %d steps: %v", done, err)
			}
			n.sweep(before)
			n.same(before)
		}
	}
}

// sweep removes harmless remains: staging and empty directories.
func (n *node) sweep(before string) {
	n.Helper()
	var left []string
	_ = filepath.WalkDir(n.root, func(file string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && !strings.Contains(before, strings.TrimPrefix(file, n.root)+" ") {
			left = append(left, file)
		}
		return nil
	})
	for i := len(left) - 1; i >= 0; i-- {
		if filepath.Base(left[i]) == staging {
			_ = os.RemoveAll(left[i])
		}
		_ = os.Remove(left[i])
	}
}

func TestFullDisksAndReadOnlyFolders(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts")
	}
	files := map[string]string{"/etc/containerd/config.toml": config17, "/var/lib/x": "", "/etc/systemd/system/x": "", "/opt/nri/plugins/10-x": "", "/usr/local/bin/x": "", "/etc/cniscope/x": ""}
	change := both(version("1.7"), edit)
	for _, dir := range []string{"/usr/local/bin", "/etc/cniscope", "/etc/systemd/system", "/var/lib", "/etc/containerd", "/opt/nri/plugins"} {
		as := change
		if dir == "/opt/nri/plugins" {
			as = both(change, plugin)
		}
		t.Run("read only "+dir, func(t *testing.T) {
			n := newNode(t, files)
			n.mount(dir, "", unix.MS_BIND)
			n.mount(dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY)
			n.refused(as, dir, syscall.EROFS.Error(), "nothing was changed")
		})
	}
	for _, size := range []string{"4k", "16k", "64k"} {
		t.Run("full at "+size, func(t *testing.T) {
			n := &node{T: t, root: t.TempDir(), program: filepath.Join(t.TempDir(), "cniscope")}
			n.mount("/", "size="+size, 0)
			n.build(strings.Repeat("x", 100_000))
			n.write("/etc/containerd/config.toml", config17Imports)
			n.refused(version("1.7"), syscall.ENOSPC.Error(), "nothing was changed")
		})
	}
}

// mount mounts a small disk, or the directory itself.
func (n *node) mount(dir, options string, flags uintptr) {
	n.Helper()
	at, kind := filepath.Join(n.root, dir), "tmpfs"
	if flags&unix.MS_BIND != 0 {
		kind = ""
	}
	if err := unix.Mount(at, at, kind, flags, options); err != nil {
		if errors.Is(err, unix.EPERM) {
			n.Skip("may not mount: ", err)
		}
		n.Fatal(err)
	}
	if flags&unix.MS_REMOUNT == 0 {
		n.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	}
}

func TestOneAtATime(t *testing.T) {
	n := newNode(t, nil)
	release := harness.Must(lockTree(n.root, false))(t)
	p := n.plan(version("2.4"))
	if _, err := p.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "another cniscope is at work") {
		t.Errorf("beside another one: %v", err)
	}
	release()
	n.apply(p)
	if newTree(n.root, nil).exists("/" + installLock) {
		t.Error("the lock is still there")
	}
}

// Any user can lock a readable directory.
func TestWhoLocksTheTreeIsInNobodysWay(t *testing.T) {
	n := newNode(t, nil)
	f := harness.Must(os.Open(n.root))(t)
	defer f.Close()
	harness.Check(t, unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	n.apply(n.plan(version("2.4")))
}

// Access control list and attributes.
func TestAReplacedFileKeepsWhatItHas(t *testing.T) {
	n := newNode(t, map[string]string{"/etc/containerd/config.toml": config17})
	file := filepath.Join(n.root, "/etc/containerd/config.toml")
	// `setfacl -m u:1234:r` (acl(5), linux/posix_acl_xattr.h): version 2, then tag, permissions and id of each
	// entry.
	acl := []byte{2, 0, 0, 0}
	for _, e := range [][3]uint32{{0x01, 6, 1<<32 - 1}, {0x02, 4, 1234}, {0x04, 0, 1<<32 - 1}, {0x10, 4, 1<<32 - 1}, {0x20, 0, 1<<32 - 1}} {
		acl = binary.LittleEndian.AppendUint16(acl, uint16(e[0]))
		acl = binary.LittleEndian.AppendUint16(acl, uint16(e[1]))
		acl = binary.LittleEndian.AppendUint32(acl, e[2])
	}
	want := map[string][]byte{"user.note": []byte("ours"), "system.posix_acl_access": acl}
	for name, value := range want {
		if err := unix.Setxattr(file, name, value, 0); errors.Is(err, unix.ENOTSUP) {
			t.Skip("no extended attributes here: ", err)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	mode, _ := os.Stat(file)
	check := func(when string) {
		t.Helper()
		for name, value := range want {
			if got, err := disk.System().Attributes(file); err != nil || !bytes.Equal(got[name], value) {
				t.Errorf("%s: %s is %x, %v", when, name, got[name], err)
			}
		}
		if now, err := os.Stat(file); err != nil || now.Mode() != mode.Mode() {
			t.Errorf("%s: mode %v, was %v", when, now.Mode(), mode.Mode())
		}
	}
	n.install(both(version("1.7"), edit))
	if n.text("/etc/containerd/config.toml") == config17 {
		t.Fatal("it was not replaced")
	}
	check("installed")
	n.uninstall(false)
	check("removed")
}

// /usr/local/bin is read-only, /opt/bin in use.
func TestTheOtherFolderForPrograms(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts")
	}
	n := newNode(t, map[string]string{"/usr/local/bin/x": "", "/opt/bin/x": ""})
	n.mount("/usr/local/bin", "", unix.MS_BIND)
	n.mount("/usr/local/bin", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY)
	harness.Equal(t, steps(n.plan(version("2.4"))), strings.Replace(asService, "/usr/local/bin", "/opt/bin", 1))
}
