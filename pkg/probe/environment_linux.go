package probe

import (
	"path"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/cniscope/cniscope/pkg/event"
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

// parseEnvironment picks the identity of a CNI call out of an environment, and the
// folders of CNI_PATH. The call is nil where there is no CNI_COMMAND. cut says that
// a value was longer than the kernel side reads.
func parseEnvironment(env []string) (call *event.Call, folders []string, cut bool) {
	vars := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if wantedVariable(name) {
			vars[name] = value
			cut = cut || len(kv) >= variableMax
		}
	}
	command := vars["CNI_COMMAND"]
	if !knownCommand(command) {
		return nil, nil, cut
	}
	for _, folder := range strings.Split(vars["CNI_PATH"], ":") {
		if folder != "" {
			folders = append(folders, path.Clean(folder))
		}
	}
	call = &event.Call{
		Command:     command,
		ContainerID: text.Clean(vars["CNI_CONTAINERID"], 128),
		NetNS:       text.Clean(vars["CNI_NETNS"], text.Bound),
		IfName:      text.Clean(vars["CNI_IFNAME"], 64),
		Pod:         podOf(vars["CNI_ARGS"]),
		Trace: event.TraceContext{
			Parent: text.Clean(vars["TRACEPARENT"], 64),
			State:  text.Clean(vars["TRACESTATE"], 512),
		},
	}
	return call, folders, cut
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
