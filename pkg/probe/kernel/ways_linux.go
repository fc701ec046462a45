package kernel

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// Way is how system calls are traced.
type Way string

const (
	// WayFunctions uses rare functions, so other system calls cost nothing.
	WayFunctions Way = "functions"
	// WaySystemCalls uses every system call of the node.
	WaySystemCalls Way = "system-calls"
)

func choose(kernel *btf.Spec) (Way, string) {
	if kernelHas[*btf.Struct](kernel, "rcu_tasks_percpu") && !hasMember(kernel, "rcu_tasks_percpu", "rtp_exit_list") {
		return WaySystemCalls, "detaching from functions may hang this kernel when a process exits (tasks_rcu_exit_srcu; fixed in Linux 6.9)"
	}
	if !kernelHas[*btf.Func](kernel, "__bpf_tramp_image_put_rcu") {
		return WaySystemCalls, "attaching to functions may crash this kernel (no __bpf_tramp_image_put_rcu; Linux 5.12)"
	}
	if !hasHelper(kernel, "BPF_FUNC_task_pt_regs") || !hasHelper(kernel, "BPF_FUNC_get_func_ret") {
		return WaySystemCalls, "the kernel does not tell its functions' system call (bpf_task_pt_regs, bpf_get_func_ret; Linux 5.17)"
	}
	for _, h := range functionHooks {
		if h.in(kernel) == "" {
			return WaySystemCalls, fmt.Sprintf("the kernel has no function %s", strings.Join(h.names(), " or "))
		}
	}
	return WayFunctions, ""
}

// NoFunctions returns why WayFunctions is impossible; may be empty.
func NoFunctions(kernel *btf.Spec) string {
	_, why := choose(kernel)
	return why
}

// names returns the kernel's possible names of the function, by preference.
func (h *functionHook) names() []string {
	if !h.systemCall {
		return h.functions
	}
	prefix := map[string]string{"amd64": "__x64_sys_", "arm64": "__arm64_sys_"}[runtime.GOARCH]
	named := slices.Clone(h.functions)
	for i := range named {
		named[i] = prefix + named[i]
	}
	return named
}

func (h *functionHook) in(kernel *btf.Spec) string {
	names := h.names()
	if i := slices.IndexFunc(names, func(name string) bool { return kernelHas[*btf.Func](kernel, name) }); i >= 0 {
		return names[i]
	}
	return ""
}

func kernelHas[T btf.Type](kernel *btf.Spec, name string) bool {
	var found T
	return kernel.TypeByName(name, &found) == nil
}

func hasMember(kernel *btf.Spec, name, member string) bool {
	var s *btf.Struct
	return kernel.TypeByName(name, &s) == nil && slices.ContainsFunc(s.Members, func(m btf.Member) bool { return m.Name == member })
}

func hasHelper(kernel *btf.Spec, name string) bool {
	var all *btf.Enum
	return kernel.TypeByName("bpf_func_id", &all) == nil && slices.ContainsFunc(all.Values, func(v btf.EnumValue) bool { return v.Name == name })
}
