package procfs

import (
	"os"
	"strconv"
	"strings"
)

// TracerOf returns the PID of a tracer; 0 if none is visible.
func TracerOf(pid int) int { return int(field(path(pid, "status"), "TracerPid:")) }

func field(file, name string) (n uint64) {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if number, is := strings.CutPrefix(line, name); is {
			n, _ = strconv.ParseUint(strings.TrimSpace(number), 10, 64)
		}
	}
	return n
}
