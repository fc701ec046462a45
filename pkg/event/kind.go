package event

import (
	"maps"
	"reflect"
	"slices"
)

// kinds holds a body of each kind by name. Names are the recording format's (pkg/record) and never change.
var kinds = func() map[string]Body {
	all := map[string]Body{}
	for _, some := range []map[string]Body{processKinds, nodeKinds, activityKinds, sourceKinds} {
		maps.Copy(all, some)
	}
	return all
}()

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
