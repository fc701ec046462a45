package disk

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const nonblock = unix.O_NONBLOCK

func unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP)
}

func attributes(file string) (map[string][]byte, error) {
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

func setAttribute(f *os.File, name string, value []byte) error {
	if err := unix.Fsetxattr(int(f.Fd()), name, value, 0); err != nil {
		return fmt.Errorf("setting %s of %s: %w", name, f.Name(), err)
	}
	return nil
}
