package record

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func fill(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), path)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, path)
		fill(t, value, path)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("the " + path + ` <&> "é…" C:\n`)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1<<60 + 1) // exceeds a float's precision
	case reflect.Uint32:
		v.SetUint(1<<32 - 1)
	case reflect.Uint64:
		v.SetUint(1<<64 - 1)
	default:
		t.Fatalf("%s: a field of kind %s: teach it to clean.go and to this test", path, v.Kind())
	}
}

func TestRoundTrip(t *testing.T) {
	for _, kind := range event.Kinds() {
		for _, filled := range []bool{false, true} {
			t.Run(kind, func(t *testing.T) {
				body := event.New(kind)
				if filled {
					fill(t, reflect.ValueOf(body).Elem(), kind)
				}
				want := event.Event{Time: 1<<60 + 1, Body: body}
				var file bytes.Buffer
				write(t, &file, Header{}, want)
				if got := read(t, &file); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
					t.Fatalf("wrote %+v, read %+v", want.Body, got)
				}
			})
		}
	}
}

func TestHeaderRoundTrip(t *testing.T) {
	want := Header{
		Writer: "0.1.0", Kernel: "6.12.9-amd64", BootID: "c0ffee", Node: "node-1", Arch: "arm64",
		Options: []byte(`{"slow":{"command":250000000000000001,"rule":[{"match":"powershell*"}]}}`),
		Clock:   Clock{Mono: 5, Wall: 1<<60 + 1},
	}
	var file bytes.Buffer
	write(t, &file, want)
	r := harness.Must(NewReader(&file))(t)
	want.Format, want.Version = "recording", Version
	if got := r.Header(); !reflect.DeepEqual(got, want) {
		t.Fatalf("wrote %+v\n read %+v", want, got)
	}
}

func write(t *testing.T, out io.Writer, header Header, events ...event.Event) {
	t.Helper()
	w := harness.Must(NewWriter(out, header))(t)
	for _, e := range events {
		harness.Check(t, w.Write(e))
	}
	harness.Check(t, w.Close())
}

func read(t *testing.T, in io.Reader) []event.Event {
	t.Helper()
	r := harness.Must(NewReader(in))(t)
	return harness.Must(all(r))(t)
}

func all(r *Reader) (events []event.Event, err error) {
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}
