package doctor

import (
	"errors"
	"strings"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

func kernelIsEnough(f *fact.Facts) ([]Finding, error) {
	k := f.Kernel.Value
	found, err := kernelAllows(f)
	if err != nil {
		return found, err
	}
	if n := f.Scope.Value.Node.Missed; f.Scope.Err == nil && n > 0 {
		found = append(found, Note.finding(
			fact.Sayf("the kernel skipped BPF programs of the running cniscope %d times, so traces lack system calls of "+
				"plugins", n),
			[]string{"the kernel does not run a program while that program runs on the same CPU (it was preempted or " +
				"interrupted)"},
			"the metric cniscope_bpf_program_missed_total counts them by program"))
	}
	if k.Functions != "" && k.BTF == "" && k.Lockdown != "confidentiality" {
		found = append(found, Note.finding(
			"system-call tracing is used: during a CNI call each system call of the node lasts about 80 ns longer",
			[]string{fact.Sayf("Linux %s: %s", k.Release, k.Functions)},
			"use Linux 6.12 or later, which slows down almost no other process (docs/kernels.md, Two ways)"))
	}
	if k.First != "" && len(k.Lacking) == 0 {
		found = append(found, Note.finding(
			"cniscope cannot check whether it runs in the node's namespaces; if it runs in another PID namespace, it "+
				"treats every plugin as untrusted",
			[]string{k.First}, "run cniscope with CAP_SYS_PTRACE and, in a pod, with hostPID and hostNetwork (docs/trust.md)"))
	}
	return found, nil
}

func kernelAllows(f *fact.Facts) ([]Finding, error) {
	k := f.Kernel.Value
	found := append(refuses(k), lacks(k)...)
	if k.Lockdown == "confidentiality" {
		found = append(found, Warning.finding(
			"kernel lockdown hides kernel memory from BPF programs, so cniscope traces plugins and commands, but not their "+
				"system calls",
			[]string{"/sys/kernel/security/lockdown: confidentiality"}, "boot with lockdown=integrity"))
	}
	if runs := f.Scope.Value.Node.Probe; f.Scope.Err == nil && runs != "" {
		for i := range found {
			found[i].Evidence = append(found[i].Evidence, "the running cniscope: "+runs)
		}
		if len(found) == 0 && runs != "attached" {
			found = append(found, Warning.finding("the running cniscope does not trace everything: "+runs,
				[]string{fact.Sayf("Linux %s", k.Release)},
				"read its log (feature unavailable)", `nothing, if you set [probe] source to "connector" on purpose`))
		}
		return found, nil
	}
	if len(k.Lacking) > 0 && len(found) == 0 {
		why := "this user may not load BPF programs (" + fact.List(k.Lacking) + ")"
		if k.Connector != "" {
			why += " or use the process connector (" + k.Connector + ")"
		}
		return nil, errors.New(why + "; run doctor as root")
	}
	return found, nil
}

func refuses(k fact.Kernel) []Finding {
	finding := Finding{Remedy: []string{"use Linux 5.8 or later, built with CONFIG_DEBUG_INFO_BTF=y, as in " +
		"current distributions"}}
	var what string
	if k.BTF != "" {
		what = "the kernel has no BTF"
		finding.Evidence = []string{fact.Sayf("Linux %s: %s", k.Release, k.BTF)}
	}
	for _, feature := range k.Features {
		if !feature.Needed || feature.There {
			continue
		}
		if what == "" {
			what = "the kernel lacks a feature that BPF programs need: " + feature.Name
		}
		finding.Evidence = append(finding.Evidence, fact.Sayf("%s: not in /sys/kernel/btf/vmlinux of Linux %s",
			feature.Name, k.Release))
	}
	switch {
	case what == "":
		return nil
	case k.Connector == "":
		finding.Level, finding.Summary = Warning, what+": cniscope traces plugins and commands by the process "+
			"connector, but not their system calls"
	default:
		finding.Level = Problem
		finding.Summary = what + ", and the fallback (process connector) does not work here, so cniscope traces nothing"
		finding.Evidence = append(finding.Evidence, "process connector: "+k.Connector)
		finding.Remedy = append(finding.Remedy, "or run cniscope on the node itself, or in a pod with hostPID, hostNetwork "+
			"and CAP_NET_ADMIN")
	}
	return []Finding{finding}
}

func lacks(k fact.Kernel) (found []Finding) {
	for _, feature := range k.Features {
		if !feature.There && !feature.Needed {
			found = append(found, Note.finding(
				strings.TrimSuffix(fact.Sayf("the kernel lacks %s: %s", feature.Name, feature.For), ": "),
				[]string{fact.Sayf("it is not in /sys/kernel/btf/vmlinux of Linux %s", k.Release)}, "use a later kernel"))
		}
	}
	return found
}
