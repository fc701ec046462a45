package probe

import (
	"path"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// kubernetesArgs are the fields of CNI_ARGS that Kubernetes' runtimes set; libcni finds
// them by these names.
type kubernetesArgs struct {
	types.CommonArgs
	K8S_POD_NAMESPACE types.UnmarshallableString
	K8S_POD_NAME      types.UnmarshallableString
	K8S_POD_UID       types.UnmarshallableString
}

// variables are those of an environment that tell of a CNI call.
type variables map[string]string

// parseEnvironment picks them out. cut says that a value was longer than the kernel side
// reads.
func parseEnvironment(env []string) (vars variables, cut bool) {
	vars = variables{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if wantedVariable(name) {
			vars[name] = value
			cut = cut || len(kv) >= variableMax
		}
	}
	return vars, cut
}

// folders are those of CNI_PATH; none where CNI_COMMAND is no command.
func (v variables) folders() (folders []string) {
	if !knownCommand(v["CNI_COMMAND"]) {
		return nil
	}
	for _, folder := range strings.Split(v["CNI_PATH"], ":") {
		if folder != "" {
			folders = append(folders, path.Clean(folder))
		}
	}
	return folders
}

// call is the identity of the call.
func (v variables) call() *event.Call {
	return &event.Call{
		Command:     v["CNI_COMMAND"],
		ContainerID: text.Clean(v["CNI_CONTAINERID"], 128),
		NetNS:       text.Clean(v["CNI_NETNS"], text.Bound),
		IfName:      text.Clean(v["CNI_IFNAME"], 64),
		Pod:         podOf(v["CNI_ARGS"]),
		Trace: event.TraceContext{
			Parent: text.Clean(v["TRACEPARENT"], 64),
			State:  text.Clean(v["TRACESTATE"], 512),
		},
	}
}

func wantedVariable(name string) bool {
	switch name {
	case "CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH", "TRACEPARENT", "TRACESTATE":
		return true
	}
	return false
}

// knownCommand: the CNI specification 1.1 defines these six and no others, so
// anything else is no CNI call, and cannot become a span name.
func knownCommand(c string) bool {
	switch c {
	case "ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION":
		return true
	}
	return false
}

func podOf(args string) event.Pod {
	var k kubernetesArgs
	// Every other key is somebody else's: never an error, never kept.
	if err := types.LoadArgs("IgnoreUnknown=1;"+args, &k); err != nil {
		return event.Pod{}
	}
	return event.Pod{
		Namespace: text.Clean(string(k.K8S_POD_NAMESPACE), 63),
		Name:      text.Clean(string(k.K8S_POD_NAME), 253),
		UID:       text.Clean(string(k.K8S_POD_UID), 63),
	}
}

// environOf returns what reads a process's environment; where it is over, that of who started
// it, which libcni passes on.
func environOf(memory *procfs.Memory) func(*event.Exec) []string {
	return func(e *event.Exec) []string {
		for _, pid := range [...]uint32{e.PID, e.ParentPID} {
			if env, err := memory.Environment(int(pid)); err == nil && len(env) > 0 {
				return env
			}
		}
		return nil
	}
}
