package event

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// It parses the package, so that a new type of body cannot be missed.
func TestEveryBodyHasAKind(t *testing.T) {
	declared := bodies(t)
	slices.Sort(declared)
	var listed []string
	for _, kind := range Kinds() {
		body := New(kind)
		listed = append(listed, reflect.TypeOf(body).Elem().Name())
		if got := Kind(body); got != kind {
			t.Errorf("New(%q) has kind %q", kind, got)
		}
	}
	slices.Sort(listed)
	if !slices.Equal(listed, declared) {
		t.Errorf("kinds: %v\nbodies: %v", listed, declared)
	}
	if New("nonsense") != nil || Kind(nil) != "" {
		t.Error("what is no kind has one")
	}
}

func TestEveryKindIsNamedAfterItsType(t *testing.T) {
	for _, kind := range Kinds() {
		if name := reflect.TypeOf(New(kind)).Elem().Name(); kind != strings.ToLower(name) {
			t.Errorf("%s is of kind %q", name, kind)
		}
	}
}

// bodies returns the names of the types that have the method Doer.
func bodies(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if method, ok := decl.(*ast.FuncDecl); ok && method.Recv != nil && method.Name.Name == "Doer" {
				names = append(names, method.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name)
			}
		}
	}
	return names
}

func TestWhoDidIt(t *testing.T) {
	said := []string{"agent", "lost"} // about a process, not by it
	for _, kind := range Kinds() {
		body := New(kind)
		field := reflect.ValueOf(body).Elem().FieldByName("Process")
		if !field.IsValid() {
			continue
		}
		field.SetString("1@2")
		want := Process("1@2")
		switch {
		case kind == "fork": // the parent is the doer
			body, want = &Fork{Parent: "3@4"}, "3@4"
		case slices.Contains(said, kind):
			want = ""
		}
		if got := body.Doer(); got != want {
			t.Errorf("%s: done by %q, want %q", kind, got, want)
		}
	}
	if got := (&Accept{Agent: Actor{Process: "1@2"}}).Doer(); got != "1@2" {
		t.Errorf("accept: done by %q", got)
	}
}
