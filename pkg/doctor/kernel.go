package doctor

import (
	"errors"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// kernelIsEnough: the kernel has what the probe uses, and we may use it.
func kernelIsEnough(f *fact.Facts) ([]Finding, error) {
	if f.Kernel.Err != nil {
		return nil, f.Kernel.Err
	}
	k := f.Kernel.Value
	if k.BTF != "" {
		return []Finding{{
			Level: Problem, Summary: "the kernel does not describe itself (BTF): cniscope cannot be attached",
			Evidence: []string{fact.Sayf("Linux %s: %s", k.Release, k.BTF)},
			Remedy:   []string{"use a kernel of 5.8 or later that is built with CONFIG_DEBUG_INFO_BTF=y; every current distribution's is"},
		}}, nil
	}
	var found []Finding
	for _, feature := range k.Features {
		if feature.There {
			continue
		}
		level := Note // everything else goes on
		if feature.Needed {
			level = Problem
		}
		found = append(found, Finding{
			Level: level, Summary: fact.Sayf("the kernel lacks %s: %s", feature.Name, feature.For),
			Evidence: []string{fact.Sayf("it is not in /sys/kernel/btf/vmlinux of Linux %s", k.Release)},
			Remedy:   []string{"use a later kernel"},
		})
	}
	if k.Lockdown == "confidentiality" {
		found = append(found, Finding{
			Level: Problem, Summary: "the kernel is locked down: it lets nobody read its memory, BPF programs included",
			Evidence: []string{"/sys/kernel/security/lockdown: confidentiality"},
			Remedy:   []string{"start it with lockdown=integrity"},
		})
	}
	if len(k.Lacking) > 0 && len(found) == 0 {
		return nil, errors.New("this user may not load BPF programs (" + fact.List(k.Lacking) + "): run it as root to check that")
	}
	return found, nil
}
