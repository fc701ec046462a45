// Package image describes a program from its raw environment and arguments. It is pure.
package image

import (
	"cmp"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

// variableMax is VAR_MAX of bpf/wire.h without the NUL.
const variableMax = 511

// Variables are of a CNI call.
type Variables struct {
	command, containerID, netns, ifname, args, path, traceParent, traceState, baggage string
}

func (v *Variables) named(name string) *string {
	switch name {
	case "CNI_COMMAND":
		return &v.command
	case "CNI_CONTAINERID":
		return &v.containerID
	case "CNI_NETNS":
		return &v.netns
	case "CNI_IFNAME":
		return &v.ifname
	case "CNI_ARGS":
		return &v.args
	case "CNI_PATH":
		return &v.path
	case "TRACEPARENT":
		return &v.traceParent
	case "TRACESTATE":
		return &v.traceState
	case "BAGGAGE":
		return &v.baggage
	}
	return nil
}

// Parse selects a CNI call's variables. cut: one is incomplete.
func Parse(env []string) (vars Variables, cut bool) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if v := vars.named(name); v != nil {
			*v = value
			cut = cut || name != "BAGGAGE" && len(kv) >= variableMax
		}
	}
	return vars, cut
}

// Folders gives CNI_PATH's directories; none without a CNI command.
func (v *Variables) Folders(separator string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !slices.Contains(commands, v.command) {
			return
		}
		for folder := range strings.SplitSeq(v.path, cmp.Or(separator, ":")) {
			if folder != "" && !yield(path.Clean(folder)) {
				return
			}
		}
	}
}

func (v *Variables) holds(folder, separator string) bool {
	for one := range v.Folders(separator) {
		if one == folder {
			return true
		}
	}
	return false
}

func (v *Variables) call() *event.Call {
	return &event.Call{
		Command:     v.command,
		ContainerID: text.Clean(v.containerID, 128),
		NetNS:       text.Clean(v.netns, text.Bound),
		IfName:      text.Clean(v.ifname, 64),
		Pod:         podOf(v.args),
		Trace:       event.TraceContext{Parent: text.Clean(v.traceParent, 64), State: text.Clean(v.traceState, 512)},
		Baggage:     members(v.baggage),
	}
}

// members returns the baggage's whole members: the kernel side cuts a variable.
func members(baggage string) string {
	const most = variableMax - len("BAGGAGE=")
	if len(baggage) >= most {
		baggage = baggage[:max(0, strings.LastIndexByte(baggage[:most], ','))]
	}
	return text.Clean(baggage, most)
}

// Wanted reports whether a variable is of a CNI call.
func Wanted(name string) bool { return new(Variables).named(name) != nil }

// commands of CNI 1.1; others cannot become span names.
var commands = []string{"ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"}

// podOf is strict like libcni.
func podOf(args string) (pod event.Pod) {
	for pair := range strings.SplitSeq(args, ";") {
		name, value, is := strings.Cut(pair, "=")
		if !is || strings.Contains(value, "=") {
			return event.Pod{}
		}
		switch name {
		case "K8S_POD_NAMESPACE":
			pod.Namespace = text.Clean(value, 63)
		case "K8S_POD_NAME":
			pod.Name = text.Clean(value, 253)
		case "K8S_POD_UID":
			pod.UID = text.Clean(value, 63)
		}
	}
	return pod
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
	if i := slices.IndexFunc(im.Args[:min(len(im.Args), 3)], func(a string) bool {
		return vars.holds(path.Dir(path.Clean(a)), im.Separator)
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
	return vars.holds(path.Clean(path.Dir(im.File)), im.Separator)
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
	if vars.holds(path.Clean(folder), im.Separator) {
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
func Acquaint(known *redact.Call, from *redact.Inherited, e *event.Exec, environ, args []string) {
	c := e.Call
	known.Await()
	known.Name(e.Name, c.Command, c.ContainerID, c.IfName, c.NetNS, baseName(c.NetNS), c.Pod.Namespace, c.Pod.Name, c.Pod.UID)
	var own, inherited []string
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case name == "CNI_ARGS":
			own = append(own, strings.Split(value, ";")...)
		case name == "BAGGAGE":
			own = append(own, variable)
		case !Wanted(name):
			inherited = append(inherited, variable)
		}
	}
	known.Inherit(from, inherited...)
	known.Environment(own...)
	known.Arguments(args...)
}

func baseName(file string) string {
	return file[strings.LastIndexByte(file, '/')+1:]
}
