package gather

import (
	"fmt"

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

// effective is the set of our capabilities; none where the kernel does not say.
func effective() uint64 {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var halves [2]unix.CapUserData
	if unix.Capget(&header, &halves[0]) != nil {
		return 0
	}
	return uint64(halves[1].Effective)<<32 | uint64(halves[0].Effective)
}
