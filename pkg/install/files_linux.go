package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/lock"
	"github.com/cniscope/cniscope/pkg/private"
)

// installLock is a file that nobody else can open, and so nobody else can take.
const installLock = "cniscope-install.lock"

func ownerOf(info fs.FileInfo) (uid, gid int) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid), int(s.Gid)
	}
	return 0, 0
}

// lockTree lets one installation at a time work on the tree at path. The kernel releases the
// lock with the process. That of a live node lies in /run, since / may be read-only; that of an
// image in the image, where whoever can write can do anything anyway.
func lockTree(path string, live bool) (release func(), err error) {
	open, dir := os.OpenRoot, path
	if live {
		open, dir = private.Dir, "/run"
	}
	root, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	defer root.Close()
	release, err = lock.In(root, installLock)
	if held := (*lock.HeldError)(nil); errors.As(err, &held) {
		return nil, fmt.Errorf("another cniscope is at work on %s (%s): try again when it is done", path, held.Holder)
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return release, nil
}

// attributesOf returns the extended attributes of a file that its next version is to have,
// too; nil where there are none. Those that the kernel or a program made of its bytes are not
// among them: hashes, signatures, capabilities.
func attributesOf(file string) (map[string][]byte, error) {
	names, err := grown(func(b []byte) (int, error) { return unix.Llistxattr(file, b) })
	if errors.Is(err, unix.ENOTSUP) || len(names) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the attributes of %s: %w", file, err)
	}
	all := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		if strings.HasPrefix(name, "security.") && name != "security.selinux" {
			continue
		}
		value, err := grown(func(b []byte) (int, error) { return unix.Lgetxattr(file, name, b) })
		if err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", name, file, err)
		}
		all[name] = value
	}
	return all, nil
}

// grown calls get with a buffer that is large enough.
func grown(get func([]byte) (int, error)) ([]byte, error) {
	for {
		n, err := get(nil)
		if err != nil || n == 0 {
			return nil, err
		}
		b := make([]byte, n)
		if n, err = get(b); !errors.Is(err, unix.ERANGE) {
			return b[:max(n, 0)], err
		}
	}
}

// setAttributes gives a file extended attributes. SELinux' label is the policy's to refuse:
// then the folder's stays.
func setAttributes(f *os.File, attributes map[string][]byte) error {
	for name, value := range attributes {
		err := unix.Fsetxattr(int(f.Fd()), name, value, 0)
		if err != nil && name != "security.selinux" {
			return fmt.Errorf("setting %s of %s: %w", name, f.Name(), err)
		}
	}
	return nil
}

// sync brings a folder's names to the disk.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func isNotEmpty(err error) bool { return errors.Is(err, unix.ENOTEMPTY) }
