package record

import (
	"reflect"

	"github.com/cniscope/cniscope/pkg/event"
)

// kinds are the bodies by what they are called in a recording. The names are part of the
// format: they never change.
var kinds = map[string]func() event.Body{
	"exec":            func() event.Body { return new(event.Exec) },
	"fork":            func() event.Body { return new(event.Fork) },
	"exit":            func() event.Body { return new(event.Exit) },
	"sandbox":         func() event.Body { return new(event.Sandbox) },
	"above":           func() event.Body { return new(event.Above) },
	"runtime":         func() event.Body { return new(event.Runtime) },
	"networks":        func() event.Body { return new(event.Networks) },
	"readiness":       func() event.Body { return new(event.Readiness) },
	"detail":          func() event.Body { return new(event.Detail) },
	"wait":            func() event.Body { return new(event.Wait) },
	"request":         func() event.Body { return new(event.Request) },
	"answer":          func() event.Body { return new(event.Answer) },
	"link":            func() event.Body { return new(event.Link) },
	"address":         func() event.Body { return new(event.Address) },
	"setting":         func() event.Body { return new(event.Setting) },
	"enter":           func() event.Body { return new(event.Enter) },
	"connect":         func() event.Body { return new(event.Connect) },
	"accept":          func() event.Body { return new(event.Accept) },
	"close":           func() event.Body { return new(event.Close) },
	"agent":           func() event.Body { return new(event.Agent) },
	"configuration":   func() event.Body { return new(event.Configuration) },
	"result":          func() event.Body { return new(event.Result) },
	"firstconnection": func() event.Body { return new(event.FirstConnection) },
	"cut":             func() event.Body { return new(event.Cut) },
	"clock":           func() event.Body { return new(event.Clock) },
	"lost":            func() event.Body { return new(event.Lost) },
	"degraded":        func() event.Body { return new(event.Degraded) },
	"tick":            func() event.Body { return new(event.Tick) },
}

var kindNames = func() map[reflect.Type]string {
	names := map[reflect.Type]string{}
	for name, make := range kinds {
		names[reflect.TypeOf(make())] = name
	}
	return names
}()

// kindOf names the kind of a body in a recording; empty for a body that has no
// place in one.
func kindOf(body event.Body) string { return kindNames[reflect.TypeOf(body)] }

// newBody returns an empty body of a kind; nil for a kind that is not known.
func newBody(kind string) event.Body {
	if make := kinds[kind]; make != nil {
		return make()
	}
	return nil
}
