package kernel

import (
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

func TestALockedDownKernelIsToldFromOneThatDoesNotAcceptThePrograms(t *testing.T) {
	for line, remedy := range map[string]string{
		"unknown func bpf_probe_read_str#45":                      "lockdown", // 5.10 and 6.1
		"program of this type cannot use helper bpf_probe_read#4": "lockdown", // 6.12 and 7.2
		"R2 invalid mem access in bpf_probe_read_kernel#113":      "report",
	} {
		err := unsupported(&ebpf.VerifierError{Cause: unix.EINVAL, Log: []string{line, "processed 9 insns"}})
		var no *UnsupportedError
		if !errors.As(err, &no) || !strings.Contains(no.Remedy, remedy) {
			t.Errorf("%s: %v, want a remedy with %q", line, err, remedy)
		}
	}
}
