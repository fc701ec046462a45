package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
)

// hook is one program of the kernel side: where it is attached, and what is lost without.
type hook struct {
	program, tracepoint string
	// demand: it is attached only while the gate is open.
	demand bool
	// feature is what a kernel without the tracepoint cannot do, since when it can;
	// empty where nothing can be done without it.
	feature, since string
}

// lifeHooks are in the order they are attached: an exit without its fork is harmless, a
// fork without its exit would leave a process in the table.
func lifeHooks() []hook {
	return []hook{
		{program: "on_exit", tracepoint: "sched_process_exit"},
		{program: "on_fork", tracepoint: "sched_process_fork"},
		{program: "on_exec", tracepoint: "sched_process_exec"},
	}
}

// insideHooks are in the order they are attached, too.
func insideHooks() []hook {
	return []hook{
		{"on_return", "sys_exit", true, "", ""},
		{"on_enter", "sys_enter", true, "", ""},
		{"on_contention_end", "contention_end", true, "waits for the kernel's own locks", "5.19"},
		{"on_contention", "contention_begin", true, "waits for the kernel's own locks", "5.19"},
		{"on_tcp_state", "inet_sock_set_state", false, "first connection, refused connections", "4.16"},
	}
}

// leaveOut takes from an object the programs whose tracepoints this kernel does not have, and
// says what is missing then.
func leaveOut(spec *ebpf.CollectionSpec, types *btf.Spec) (missing []Missing) {
	said := map[string]bool{}
	for _, h := range insideHooks() {
		var known *btf.Typedef
		if h.feature == "" || types.TypeByName("btf_trace_"+h.tracepoint, &known) == nil {
			continue
		}
		delete(spec.Programs, h.program)
		if !said[h.feature] {
			said[h.feature] = true
			missing = append(missing, Missing{h.feature, "needs Linux " + h.since})
		}
	}
	return missing
}

// attachments are programs that are attached, and detached together. Where a program belongs
// is part of it (its section in bpf/): a BTF tracepoint, or the beginning or end of one of the
// kernel's functions, are attached in the same way.
type attachments []link.Link

func (a *attachments) attach(program *ebpf.Program) error {
	l, err := link.AttachTracing(link.TracingOptions{Program: program})
	if err != nil {
		return fmt.Errorf("attaching %s: %w", program, err)
	}
	*a = append(*a, l)
	return nil
}

func (a *attachments) close() error {
	var errs []error
	for _, l := range *a {
		errs = append(errs, l.Close())
	}
	*a = nil
	return errors.Join(errs...)
}
