package doctor

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lacking are those of the capabilities that this process does not have.
func lacking(wanted ...int) (names []string) {
	have := effective()
	if have&(1<<unix.CAP_SYS_ADMIN) != 0 {
		have |= 1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON // it stands for both
	}
	for _, c := range wanted {
		if have&(1<<c) == 0 {
			names = append(names, capability(c))
		}
	}
	return names
}

func capability(c int) string {
	switch c {
	case unix.CAP_SYS_PTRACE:
		return "CAP_SYS_PTRACE"
	case unix.CAP_BPF:
		return "CAP_BPF"
	case unix.CAP_PERFMON:
		return "CAP_PERFMON"
	}
	return fmt.Sprint("capability ", c)
}

// effective is the set of our capabilities; none where it cannot be read.
func effective() (set uint64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			set, _ = strconv.ParseUint(strings.TrimSpace(hex), 16, 64) // none, where it is no number
		}
	}
	return set
}
