package record

import "github.com/cniscope/cniscope/pkg/event"

// kindOf names the kind of a body in a recording; empty for a body that has no
// place in one. The names are part of the format: they never change.
func kindOf(body event.Body) string {
	switch body.(type) {
	case *event.Exec:
		return "exec"
	case *event.Fork:
		return "fork"
	case *event.Exit:
		return "exit"
	case *event.Sandbox:
		return "sandbox"
	case *event.Above:
		return "above"
	case *event.Runtime:
		return "runtime"
	case *event.Networks:
		return "networks"
	case *event.Clock:
		return "clock"
	case *event.Lost:
		return "lost"
	case *event.Degraded:
		return "degraded"
	case *event.Detail:
		return "detail"
	case *event.Wait:
		return "wait"
	case *event.Request:
		return "request"
	case *event.Answer:
		return "answer"
	case *event.Address:
		return "address"
	case *event.Setting:
		return "setting"
	case *event.Enter:
		return "enter"
	case *event.Connect:
		return "connect"
	case *event.Accept:
		return "accept"
	case *event.Close:
		return "close"
	case *event.Configuration:
		return "configuration"
	case *event.Result:
		return "result"
	case *event.FirstConnection:
		return "firstconnection"
	case *event.Cut:
		return "cut"
	case *event.Tick:
		return "tick"
	}
	return ""
}

// newBody returns an empty body of a kind; nil for a kind that is not known.
func newBody(kind string) event.Body {
	switch kind {
	case "exec":
		return new(event.Exec)
	case "fork":
		return new(event.Fork)
	case "exit":
		return new(event.Exit)
	case "sandbox":
		return new(event.Sandbox)
	case "above":
		return new(event.Above)
	case "runtime":
		return new(event.Runtime)
	case "networks":
		return new(event.Networks)
	case "clock":
		return new(event.Clock)
	case "lost":
		return new(event.Lost)
	case "degraded":
		return new(event.Degraded)
	case "detail":
		return new(event.Detail)
	case "wait":
		return new(event.Wait)
	case "request":
		return new(event.Request)
	case "answer":
		return new(event.Answer)
	case "address":
		return new(event.Address)
	case "setting":
		return new(event.Setting)
	case "enter":
		return new(event.Enter)
	case "connect":
		return new(event.Connect)
	case "accept":
		return new(event.Accept)
	case "close":
		return new(event.Close)
	case "configuration":
		return new(event.Configuration)
	case "result":
		return new(event.Result)
	case "firstconnection":
		return new(event.FirstConnection)
	case "cut":
		return new(event.Cut)
	case "tick":
		return new(event.Tick)
	}
	return nil
}
