package kernel

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"

	"github.com/cniscope/cniscope/test/harness"
)

// types of a kernel with all required functions.
func types() []btf.Type {
	number := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	all := []btf.Type{
		number,
		&btf.Enum{Name: "bpf_func_id", Size: 4, Values: []btf.EnumValue{{Name: "BPF_FUNC_task_pt_regs", Value: 175}, {Name: "BPF_FUNC_get_func_ret", Value: 184}}},
		&btf.Struct{Name: "rcu_tasks_percpu", Size: 4, Members: []btf.Member{{Name: "rtp_exit_list", Type: number}}},
	}
	names := []string{"__bpf_tramp_image_put_rcu"}
	for _, h := range functionHooks {
		names = append(names, h.names()[0])
	}
	for _, name := range names {
		all = append(all, &btf.Func{Name: name, Type: &btf.FuncProto{Return: number}, Linkage: btf.StaticFunc})
	}
	return all
}

func without(name string) []btf.Type {
	return slices.DeleteFunc(types(), func(t btf.Type) bool { return t.TypeName() == name })
}

func kernelOf(t *testing.T, all []btf.Type) *btf.Spec {
	t.Helper()
	b := harness.Must(btf.NewBuilder(all, nil))(t)
	raw := harness.Must(b.Marshal(nil, nil))(t)
	return harness.Must(btf.LoadSpecFromReader(bytes.NewReader(raw)))(t)
}

func TestFunctionsAreChosenWhereTheKernelHasAllThatTheyNeed(t *testing.T) {
	old := without("rcu_tasks_percpu")
	deadlock := append(slices.Clone(old), &btf.Struct{Name: "rcu_tasks_percpu", Size: 4})
	renamed := append(without("anon_pipe_read"), &btf.Func{Name: "pipe_read", Type: &btf.FuncProto{Return: types()[0]}, Linkage: btf.StaticFunc})
	for name, c := range map[string]struct {
		types []btf.Type
		way   Way
		why   string
	}{
		"all":                                 {types(), WayFunctions, ""},
		"no RCU of tasks":                     {old, WayFunctions, ""},
		"under its older name":                {renamed, WayFunctions, ""},
		"the deadlock":                        {deadlock, WaySystemCalls, "tasks_rcu_exit_srcu"},
		"trampolines that are freed too soon": {without("__bpf_tramp_image_put_rcu"), WaySystemCalls, "__bpf_tramp_image_put_rcu"},
		"no helpers":                          {without("bpf_func_id"), WaySystemCalls, "bpf_task_pt_regs"},
		"a function that is gone":             {without("netlink_sendmsg"), WaySystemCalls, "no function netlink_sendmsg"},
		"a function of two names":             {without("anon_pipe_read"), WaySystemCalls, "no function anon_pipe_read or pipe_read"},
	} {
		t.Run(name, func(t *testing.T) {
			way, why := choose(kernelOf(t, c.types))
			if way != c.way || (c.why == "") != (why == "") || !strings.Contains(why, c.why) {
				t.Errorf("%s: %q, want %s: %q", way, why, c.way, c.why)
			}
		})
	}
}

func TestEveryProgramOfFunctionsIsAttached(t *testing.T) {
	spec := harness.Must(LoadFunctions())(t)
	attached := slices.Concat(functionTracepoints, waitHooks, lockHooks, talkHooks, []string{lookBack, lookForServers, missHook})
	for _, h := range functionHooks {
		attached = append(attached, h.programs()...)
	}
	for name := range spec.Programs {
		if !slices.Contains(attached, name) {
			t.Errorf("%s is attached to nothing", name)
		}
	}
	for _, name := range attached {
		if spec.Programs[name] == nil {
			t.Errorf("there is no program %s", name)
		}
	}
}
