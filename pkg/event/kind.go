package event

import (
	"maps"
	"reflect"
	"slices"
)

// kinds holds a body of each kind by name. Names are the recording format's (pkg/record) and never change.
var kinds = map[string]Body{
	"exec": &Exec{},
	"fork": &Fork{},
	"exit": &Exit{},
	"step": &Step{},

	"sandbox":    &Sandbox{},
	"above":      &Above{},
	"runtime":    &Runtime{},
	"registered": &Registered{},
	"networks":   &Networks{},
	"readiness":  &Readiness{},
	"programs":   &Programs{},
	"look":       &Look{},

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
	"exchange":        &Exchange{},
	"agent":           &Agent{},
	"configuration":   &Configuration{},
	"result":          &Result{},
	"firstconnection": &FirstConnection{},
	"mount":           &Mount{},
	"questions":       &Questions{},
	"cut":             &Cut{},
	"missing":         &Missing{},
	"lockfile":        &LockFile{},

	"clock":    &Clock{},
	"lost":     &Lost{},
	"degraded": &Degraded{},
	"tick":     &Tick{},
	"origin":   &Origin{},
}

var names = func() map[reflect.Type]string {
	byType := make(map[reflect.Type]string, len(kinds))
	for name, body := range kinds {
		byType[reflect.TypeOf(body)] = name
	}
	return byType
}()

// Kinds returns the sorted names of all kinds of events.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// Kind returns the name of a body's kind, or "".
func Kind(body Body) string { return names[reflect.TypeOf(body)] }

// New returns an empty body, or nil for an unknown kind.
func New(kind string) Body {
	if body := kinds[kind]; body != nil {
		return reflect.New(reflect.TypeOf(body).Elem()).Interface().(Body)
	}
	return nil
}
