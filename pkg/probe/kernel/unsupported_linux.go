package kernel

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
)

// unsupported explains the errors that operators meet.
func unsupported(err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.Is(err, os.ErrPermission):
		return &UnsupportedError{
			Need:   "the permission to load BPF programs",
			Remedy: "run as root or with CAP_BPF and CAP_PERFMON, outside of lockdown=confidentiality",
			Err:    err,
		}
	case errors.Is(err, os.ErrNotExist), errors.Is(err, ebpf.ErrNotSupported):
		return &UnsupportedError{
			Need:   "a kernel with BTF and BPF ring buffers",
			Remedy: "use Linux 5.8 or later, built with CONFIG_DEBUG_INFO_BTF (/sys/kernel/btf/vmlinux exists)",
			Err:    err,
		}
	case errors.As(err, &verifier) && slices.ContainsFunc(verifier.Log, withheld):
		return &UnsupportedError{
			Need:   "a kernel whose memory BPF programs may read",
			Remedy: "start it without lockdown=confidentiality (lockdown=integrity is enough for Secure Boot)",
			Err:    err,
		}
	case errors.As(err, &verifier):
		return &UnsupportedError{
			Need:   "a kernel that accepts the probe's programs",
			Remedy: "report this with the kernel's version (uname -r)",
			Err:    err,
		}
	}
	return fmt.Errorf("kernel probe: %w", err)
}

// withheld reports whether the verifier says that there is no reading of the kernel's memory.
// Every kernel has the function, and a locked down one keeps it back
// (kernel/trace/bpf_trace.c, LOCKDOWN_BPF_READ_KERNEL). The words differ by version.
func withheld(line string) bool {
	return strings.Contains(line, "unknown func bpf_probe_read") ||
		strings.Contains(line, "cannot use helper bpf_probe_read")
}
