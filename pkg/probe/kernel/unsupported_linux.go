package kernel

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/cniscope/cniscope/pkg/event"
)

func unsupported(err error) error {
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
	case isWithheld(err):
		return &UnsupportedError{Need: "a kernel whose memory BPF programs may read", Remedy: unlock, Err: err}
	case errors.As(err, new(*ebpf.VerifierError)):
		return &UnsupportedError{
			Need:   "a kernel that accepts the probe's programs",
			Remedy: "report this with the kernel's version (uname -r)",
			Err:    err,
		}
	}
	return fmt.Errorf("kernel probe: %w", err)
}

const unlock = "start it without lockdown=confidentiality (lockdown=integrity is enough for Secure Boot)"

// isWithheld reports whether helpers may not read kernel memory.
func isWithheld(err error) bool {
	verifier, is := errors.AsType[*ebpf.VerifierError](err)
	return is && slices.ContainsFunc(verifier.Log, withheld)
}

// Inside is the feature of event.Degraded for system-call tracing.
const Inside = "inside of plugins"

func insideRefused(err error) string {
	if isWithheld(err) {
		return "the kernel keeps its memory from BPF programs (lockdown=confidentiality): plugins and commands are seen, " +
			"not what these ask of the kernel or wait for; " + unlock
	}
	return err.Error()
}

func functionsRefused(err error) string {
	if errors.Is(err, os.ErrPermission) {
		return "the kernel does not let BPF programs attach to its functions"
	}
	return err.Error()
}

// withholds returns what is missing without such helpers and bpf_rdonly_cast; an UnsupportedError if nothing works.
func (s *Side) withholds(o Options) error {
	if o.Nested {
		return &UnsupportedError{
			Need:   "under lockdown=confidentiality, Linux 6.2 or the node's own PID namespace",
			Remedy: "run cniscope there (hostPID of a pod), or " + unlock,
		}
	}
	const files = "standard input and output of what a process with more than 64 open files starts"
	for _, feature := range []string{files, "starts of sandboxes"} {
		reason := "under lockdown=confidentiality that needs Linux 6.2"
		s.Missing = append(s.Missing, &event.Degraded{Feature: feature, Reason: reason})
	}
	return nil
}

// withheld recognizes the verifier's varying messages for a helper that lockdown hides (kernel/trace/bpf_trace.c,
// LOCKDOWN_BPF_READ_KERNEL).
func withheld(line string) bool {
	return strings.Contains(line, "unknown func bpf_probe_read") ||
		strings.Contains(line, "cannot use helper bpf_probe_read")
}
