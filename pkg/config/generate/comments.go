package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

type comments map[string]map[string]field

type field struct {
	typeName string
	lines    []string
}

// of follows path from Options. Lines of examples begin with a tab.
func (c comments) of(path []string) []string {
	f := field{typeName: "Options"}
	for _, name := range path {
		f = c[f.typeName][name]
	}
	return f.lines
}

func readComments(folder string) (comments, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	all := comments{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			t, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := t.Type.(*ast.StructType); ok {
				all[t.Name.Name] = fieldsOf(s)
			}
			return false
		})
	}
	return all, nil
}

func fieldsOf(s *ast.StructType) map[string]field {
	all := map[string]field{}
	for _, f := range s.Fields.List {
		var described field
		if t, ok := f.Type.(*ast.Ident); ok {
			described.typeName = t.Name
		}
		if f.Doc != nil {
			for _, c := range f.Doc.List {
				if line := strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " "); line != "" {
					described.lines = append(described.lines, line)
				}
			}
		}
		for _, name := range f.Names {
			all[name.Name] = described
		}
	}
	return all
}
