//go:build linux

// Command vm is the only program in the machines of test/kernels: init, the CNI plugins, and their commands. It
// prints one JSON line per feature and powers off.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	if err := play(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
	}
	powerOff()
}

// play does what the kernel's command line asks for, as cniscope.count=1.
func play(to io.Writer) error {
	read, err := os.ReadFile("/proc/cmdline")
	options := string(read)
	time.AfterFunc(patience+time.Duration(number(options, "starts")+number(options, "whole"))*time.Minute, powerOff)
	if err := errors.Join(err, install(), release(to)); err != nil {
		return err
	}
	do, times := report, 0
	for name, other := range map[string]func(to io.Writer, options string, times int) error{
		"count": count, "price": price, "clocks": stepClocks, "misses": countMisses, "detach": detach, "compare": compare, "starts": startAndStop,
	} {
		if n := number(options, name); n > 0 {
			do, times = other, n
		}
	}
	if err := do(to, options, times); err != nil {
		return err
	}
	_, err = fmt.Fprint(to, "\nend\n")
	return err
}

func number(options, key string) int {
	for _, o := range strings.Fields(options) {
		if n, is := strings.CutPrefix(o, "cniscope."+key+"="); is {
			times, _ := strconv.Atoi(n)
			return times
		}
	}
	return 0
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
