package model

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
)

func functionName(function string) string {
	name := strings.ReplaceAll(function[strings.LastIndexByte(function, '/')+1:], "[...]", "")
	parts := strings.Split(name, ".")
	for len(parts) > 2 && closure.MatchString(parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	return parts[len(parts)-1]
}

var closure = regexp.MustCompile(`^(func|gowrap|deferwrap)?[0-9]+$`)

// Caller formats a call: "configureContainerLink (interface_configuration.go:136)".
func Caller(f event.Frame) string {
	name := functionName(f.Function)
	switch {
	case f.File == "":
		return name
	case f.Line == 0:
		return fmt.Sprintf("%s (%s)", name, path.Base(f.File))
	}
	return fmt.Sprintf("%s (%s:%d)", name, path.Base(f.File), f.Line)
}

// CallPath names a stack's innermost call and two callers: "cmdAdd > configure > getNetAdapter (net.go:136)".
func CallPath(stack []event.Frame) (path string) {
	last := ""
	for i, callers := 0, 0; i < len(stack) && callers < 3; i++ {
		name := functionName(stack[i].Function)
		switch {
		case i == 0:
			path = Caller(stack[i])
		case name == last: // a closure
			continue
		default:
			path = name + " > " + path
		}
		last = name
		callers++
	}
	return path
}

// CommonCallers returns the calls on both stacks, without the line where that differs.
func CommonCallers(one, other []event.Frame) (common []event.Frame) {
	for _, f := range one {
		i := slices.IndexFunc(other, func(o event.Frame) bool { return o.Function == f.Function })
		if i < 0 {
			continue
		}
		if other[i].Line != f.Line {
			f.Line = 0
		}
		common = append(common, f)
	}
	return common
}
