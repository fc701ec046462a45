package event

import (
	"maps"
	"reflect"
	"slices"
)

// kinds holds an empty body of every kind, by the kind's name. The names are part of the
// recording format (pkg/record), so they never change. A new kind of event is its type, its
// Doer, and a line here.
var kinds = map[string]Body{
	// The life of processes.
	"exec": &Exec{},
	"fork": &Fork{},
	"exit": &Exit{},
	// The node and its runtime.
	"sandbox":   &Sandbox{},
	"above":     &Above{},
	"runtime":   &Runtime{},
	"networks":  &Networks{},
	"readiness": &Readiness{},
	// What processes ask of the kernel and wait for.
	"detail":          &Detail{},
	"wait":            &Wait{},
	"request":         &Request{},
	"answer":          &Answer{},
	"link":            &Link{},
	"address":         &Address{},
	"setting":         &Setting{},
	"enter":           &Enter{},
	"connect":         &Connect{},
	"accept":          &Accept{},
	"close":           &Close{},
	"agent":           &Agent{},
	"configuration":   &Configuration{},
	"result":          &Result{},
	"firstconnection": &FirstConnection{},
	"cut":             &Cut{},
	// The source itself.
	"clock":    &Clock{},
	"lost":     &Lost{},
	"degraded": &Degraded{},
	"tick":     &Tick{},
}

var names = func() map[reflect.Type]string {
	byType := make(map[reflect.Type]string, len(kinds))
	for name, body := range kinds {
		byType[reflect.TypeOf(body)] = name
	}
	return byType
}()

// Kinds returns the names of all kinds of events, sorted. It is the closed vocabulary: tests
// walk it to see that no kind is forgotten.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// Kind returns the name of a body's kind; empty for a type that Kinds does not list.
func Kind(body Body) string { return names[reflect.TypeOf(body)] }

// New returns an empty body of the kind; nil if there is no such kind.
func New(kind string) Body {
	if body := kinds[kind]; body != nil {
		return reflect.New(reflect.TypeOf(body).Elem()).Interface().(Body)
	}
	return nil
}
