package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/cniscope/cniscope/pkg/text"
)

// maxString is PATH_MAX of Linux; sources cut strings to this or less.
const maxString = 4096

func clean(v any) { cleanValue(reflect.ValueOf(v)) }

func cleanValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			cleanValue(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			cleanValue(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			cleanValue(v.Index(i))
		}
	case reflect.Interface:
		if _, number := v.Interface().(json.Number); !number && !v.IsNil() {
			inner := reflect.New(v.Elem().Type()).Elem()
			inner.Set(v.Elem())
			cleanValue(inner)
			v.Set(inner)
		}
	case reflect.Map:
		v.Set(cleanMap(v))
	case reflect.String:
		v.SetString(text.Clean(v.String(), maxString))
	}
}

// cleanMap sorts the keys, so the same key wins if two become equal.
func cleanMap(v reflect.Value) reflect.Value {
	if v.IsNil() {
		return v
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) })
	out := reflect.MakeMapWithSize(v.Type(), len(keys))
	for _, k := range keys {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.Set(k)
		value.Set(v.MapIndex(k))
		cleanValue(key)
		cleanValue(value)
		out.SetMapIndex(key, value)
	}
	return out
}

func cleanObject(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var object map[string]any
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber() // a float cannot hold a duration in ns
	if err := in.Decode(&object); err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	clean(&object)
	return json.Marshal(object)
}
