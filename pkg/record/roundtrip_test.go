package record

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

// everyKind is one body of every kind. TestEveryBodyHasAKind fails when one is
// forgotten here or in kind.go.
func everyKind() []event.Body {
	return []event.Body{
		&event.Exec{}, &event.Fork{}, &event.Exit{},
		&event.Sandbox{}, &event.Above{}, &event.Runtime{}, &event.Networks{},
		&event.Readiness{}, &event.Detail{}, &event.Wait{}, &event.Request{}, &event.Answer{}, &event.Link{}, &event.Address{},
		&event.Setting{}, &event.Enter{}, &event.Connect{}, &event.Accept{}, &event.Close{}, &event.Agent{},
		&event.Configuration{}, &event.Result{}, &event.FirstConnection{}, &event.Cut{},
		&event.Clock{}, &event.Lost{}, &event.Degraded{}, &event.Tick{},
	}
}

// fill sets every field, however deep, to something that is not its zero value.
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
		v.SetInt(1<<60 + 1) // more than a float keeps
	case reflect.Uint32:
		v.SetUint(1<<32 - 1)
	case reflect.Uint64:
		v.SetUint(1<<64 - 1)
	default:
		t.Fatalf("%s: a field of kind %s: teach it to clean.go and to this test", path, v.Kind())
	}
}

func TestRoundTrip(t *testing.T) {
	for _, body := range everyKind() {
		for _, filled := range []bool{false, true} {
			name := reflect.TypeOf(body).Elem().Name()
			t.Run(name, func(t *testing.T) {
				if filled {
					fill(t, reflect.ValueOf(body).Elem(), name)
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

// Every type of pkg/event that is a body can be recorded: found in its source, so
// that a new one cannot be forgotten.
func TestEveryBodyHasAKind(t *testing.T) {
	var tested []string
	for _, body := range everyKind() {
		name := reflect.TypeOf(body).Elem().Name()
		tested = append(tested, name)
		kind := kindOf(body)
		if kind != strings.ToLower(name) {
			t.Errorf("%s is recorded as %q", name, kind)
		}
		if back := newBody(kind); reflect.TypeOf(back) != reflect.TypeOf(body) {
			t.Errorf("kind %q is read as %T", kind, back)
		}
	}
	declared := bodiesOf(t, "../event")
	slices.Sort(tested)
	slices.Sort(declared)
	if !slices.Equal(tested, declared) {
		t.Fatalf("bodies in pkg/event: %v\nrecorded and tested: %v", declared, tested)
	}
}

func bodiesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("no source of pkg/event:", err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			method, ok := decl.(*ast.FuncDecl)
			if ok && method.Recv != nil && method.Name.Name == "body" {
				names = append(names, method.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name)
			}
		}
	}
	return names
}

func TestHeaderRoundTrip(t *testing.T) {
	want := Header{
		Writer: "0.1.0", Kernel: "6.12.9-amd64", BootID: "c0ffee", Node: "node-1", Arch: "arm64",
		Options: []byte(`{"slow":{"command":250000000000000001,"rule":[{"match":"powershell*"}]}}`),
		Clock:   Clock{Mono: 5, Wall: 1<<60 + 1},
	}
	var file bytes.Buffer
	write(t, &file, want)
	r, err := NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	want.Format, want.Version = "recording", 1
	if got := r.Header(); !reflect.DeepEqual(got, want) {
		t.Fatalf("wrote %+v\n read %+v", want, got)
	}
}

func write(t *testing.T, out io.Writer, header Header, events ...event.Event) {
	t.Helper()
	w, err := NewWriter(out, header)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, in io.Reader) []event.Event {
	t.Helper()
	r, err := NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	events, err := all(r)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// all reads to the end; io.EOF is no error.
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
