package procfs

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// TracerOf returns the PID of a tracer; 0 if none is visible.
func TracerOf(pid int) int { return int(field(path(pid, "status"), "TracerPid:")) }

// Calls counts a process's calls of read and write.
func Calls(pid int) (reads, writes uint64) {
	text := lineAt(unix.AT_FDCWD, path(pid, "io"))
	return fieldIn(text, "syscr:", 10), fieldIn(text, "syscw:", 10)
}

func field(file, name string) uint64 {
	text, _ := os.ReadFile(file)
	return fieldIn(string(text), name, 10)
}

func fieldIn(text, name string, base int) (n uint64) {
	for line := range strings.Lines(text) {
		if number, is := strings.CutPrefix(line, name); is {
			n, _ = strconv.ParseUint(strings.TrimSpace(number), base, 64)
		}
	}
	return n
}

// ExitOf returns a wait status's exit code, or the name of the signal.
func ExitOf(status uint32) (code uint32, signal string) {
	if n := status & 0x7f; n != 0 {
		if name := unix.SignalName(unix.Signal(n)); name != "" {
			return 0, name
		}
		return 0, fmt.Sprintf("signal %d", n)
	}
	return status >> 8 & 0xff, ""
}
