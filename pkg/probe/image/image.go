// Package image describes a program from its raw environment and arguments. It is pure.
package image

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

// kubernetesArgs are the fields of CNI_ARGS for pods. libcni finds them by name.
type kubernetesArgs struct {
	types.CommonArgs
	K8S_POD_NAMESPACE types.UnmarshallableString
	K8S_POD_NAME      types.UnmarshallableString
	K8S_POD_UID       types.UnmarshallableString
}

// VariableMax is VAR_MAX of bpf/wire.h without the NUL.
const VariableMax = 511

// Variables are of a CNI call.
type Variables map[string]string

// Parse selects a CNI call's variables. cut: one is incomplete.
func Parse(env []string) (vars Variables, cut bool) {
	vars = Variables{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if Wanted(name) {
			vars[name] = value
			cut = cut || name != "BAGGAGE" && len(kv) >= VariableMax
		}
	}
	return vars, cut
}

// Folders returns CNI_PATH's directories; none without a CNI command.
func (v Variables) Folders(separator string) (folders []string) {
	if !slices.Contains(commands, v["CNI_COMMAND"]) {
		return nil
	}
	for _, folder := range strings.Split(v["CNI_PATH"], cmp.Or(separator, ":")) {
		if folder != "" {
			folders = append(folders, path.Clean(folder))
		}
	}
	return folders
}

func (v Variables) call() *event.Call {
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
		Baggage: members(v["BAGGAGE"]),
	}
}

// members returns the baggage's whole members: the kernel side cuts a variable.
func members(baggage string) string {
	const most = VariableMax - len("BAGGAGE=")
	if len(baggage) >= most {
		baggage = baggage[:max(0, strings.LastIndexByte(baggage[:most], ','))]
	}
	return text.Clean(baggage, most)
}

// Wanted reports whether a variable is of a CNI call.
func Wanted(name string) bool {
	return slices.Contains([]string{
		"CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH", "TRACEPARENT", "TRACESTATE",
		"BAGGAGE",
	}, name)
}

// commands of CNI 1.1; others cannot become span names.
var commands = []string{"ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"}

func podOf(args string) event.Pod {
	var k kubernetesArgs
	if err := types.LoadArgs("IgnoreUnknown=1;"+args, &k); err != nil {
		return event.Pod{}
	}
	return event.Pod{
		Namespace: text.Clean(string(k.K8S_POD_NAMESPACE), 63),
		Name:      text.Clean(string(k.K8S_POD_NAME), 253),
		UID:       text.Clean(string(k.K8S_POD_UID), 63),
	}
}

// Image is a program's raw state.
type Image struct {
	File      string
	Args, Env []string
	// Script: Args begin with the interpreter.
	Script    bool
	Truncated bool
	// separator of CNI_PATH; empty means ":"
	Separator string
}

// Locate finds the plugin in CNI_PATH if File is a script's interpreter or a symbolic link's target.
func (im *Image) Locate() {
	vars, _ := Parse(im.Env)
	folders := vars.Folders(im.Separator)
	if i := slices.IndexFunc(im.Args[:min(len(im.Args), 3)], func(a string) bool {
		return slices.Contains(folders, path.Dir(path.Clean(a)))
	}); i >= 0 {
		im.File, im.Script = im.Args[i], i > 0
	}
}

// nameMax is TASK_COMM_LEN (include/linux/sched.h) without the NUL.
const nameMax = 15

// FindScript is for an interpreter as File: the process has the script's name, which follows the interpreter and up
// to one argument (binfmt_script(5)).
func (im *Image) FindScript(called string) {
	is := func(file string) bool {
		base := path.Base(file)
		return base[:min(len(base), nameMax)] == called
	}
	if im.Script || is(im.File) {
		return
	}
	for _, arg := range im.Args[min(len(im.Args), 1):min(len(im.Args), 3)] {
		if is(arg) {
			im.File, im.Script = arg, true
			return
		}
	}
}

// InPath reports whether the file is in CNI_PATH.
func (im Image) InPath() bool {
	vars, _ := Parse(im.Env)
	return slices.Contains(vars.Folders(im.Separator), path.Clean(path.Dir(im.File)))
}

// Describe puts the sanitized image into e.
func (im Image) Describe(e *event.Exec, mode arguments.Mode, known *redact.Call) {
	args := im.Args
	called := ""
	if len(args) > 0 {
		called = baseName(args[0])
	}
	if im.Script || called == "" {
		// binfmt_script(5)
		called = baseName(im.File)
		if i := slices.Index(args, im.File); i > 0 {
			args = args[i:]
		}
	}
	vars, cut := Parse(im.Env)
	folder, file := path.Split(im.File)
	if !arguments.IsTool(called) && called != file && !known.Harmless(called) {
		called = file // not arbitrary like argv[0]
	}
	e.Name = strings.TrimSuffix(called, ".exe")
	if slices.Contains(vars.Folders(im.Separator), path.Clean(folder)) {
		e.InPath, e.Call = true, vars.call() // the plugin's type
	} else {
		clean := known.Path(im.File) // a secret may contain slashes
		e.Name, folder, file = known.Program(e.Name), clean[:strings.LastIndexByte(clean, '/')+1], known.Program(file)
	}
	e.File, e.Name = text.Clean(folder+file, text.Bound), text.Clean(e.Name, 64)
	if len(args) > 0 {
		e.Args, e.Hidden = arguments.Sanitise(known, called, args[1:], mode)
	}
	e.Truncated = im.Truncated || cut
}

// Acquaint records environment and arguments for redaction.
func Acquaint(known *redact.Call, e *event.Exec, environ, args []string) {
	c := e.Call
	known.Await()
	known.Name(e.Name, c.Command, c.ContainerID, c.IfName, c.NetNS, baseName(c.NetNS), c.Pod.Namespace, c.Pod.Name, c.Pod.UID)
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case name == "CNI_ARGS":
			known.Environment(strings.Split(value, ";")...)
		case name == "BAGGAGE" || !Wanted(name):
			known.Environment(variable)
		}
	}
	known.Arguments(args...)
}

func baseName(file string) string {
	return file[strings.LastIndexByte(file, '/')+1:]
}
