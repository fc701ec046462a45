//go:build linux

// Command vm is the only program in the machines of test/kernels: init, the CNI plugins, and their commands. It
// prints one JSON line per feature and powers off.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const mounted = "CNISCOPE_MOUNTED"

// patience bounds a machine's own time, usually in instructions of a nanosecond; none needs a tenth.
const patience = 15 * time.Minute

func main() {
	name := filepath.Base(os.Args[0])
	if do := act(name); do != nil {
		os.Exit(do())
	}
	if os.Getenv(mounted) == "" {
		fmt.Fprintln(os.Stderr, "init:", begin())
		powerOff()
	}
	options, err := os.ReadFile("/proc/cmdline")
	time.AfterFunc(patience+time.Duration(starts(string(options))+whole(string(options)))*time.Minute, powerOff)
	switch {
	case err != nil:
	case counts(string(options)):
		err = count(os.Stdout)
	case prices(string(options)):
		err = price(os.Stdout)
	case steps(string(options)):
		err = stepClocks(os.Stdout, string(options))
	case misses(string(options)):
		err = countMisses(os.Stdout)
	case number(string(options), "cniscope.detach=") > 0:
		err = detach(os.Stdout)
	case rounds(string(options)) > 0:
		err = compare(os.Stdout, rounds(string(options)))
	case starts(string(options)) > 0:
		err = startAndStop(os.Stdout, whole(string(options)), starts(string(options)))
	default:
		err = report(os.Stdout, string(options))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
	}
	powerOff()
}

// begin prepares the machine and restarts init: the BPF library reads /proc before main.
func begin() error {
	for _, m := range []struct{ kind, at string }{
		{"proc", "/proc"},
		{"sysfs", "/sys"},
		{"devtmpfs", "/dev"},
		{"securityfs", "/sys/kernel/security"},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", m.at, err)
		}
	}
	console, err := os.OpenFile("/dev/console", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup3(int(console.Fd()), fd, 0); err != nil {
			return err
		}
	}
	return unix.Exec("/init", []string{"/init"}, []string{mounted + "=1", "PATH=/bin", "GODEBUG=asyncpreemptoff=1"})
}

func powerOff() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	os.Exit(1) // the kernel panics, which also ends the machine
}

// release prints the kernel's release.
func release(to io.Writer) error {
	var u unix.Utsname
	err := unix.Uname(&u)
	if err == nil {
		_, err = fmt.Fprintf(to, "\nkernel %s\n", unix.ByteSliceToString(u.Release[:]))
	}
	return err
}
