package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
)

type mutant struct {
	id             int
	file           string
	line, from, to int
	old, with      string
	body           body
	stillborn      bool // does not compile
}

type body struct {
	from, to  int
	text, end string // end is the last text of a copy
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d  %s → %s", m.file, m.line, short(m.old), short(m.with))
}

func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if s == "" {
		return "nothing"
	}
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

var swaps = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*",
	token.INC: "--", token.DEC: "++", token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=",
}

func mutantsOf(file string) ([]*mutant, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	v := visitor{file: file, src: src, fset: token.NewFileSet()}
	parsed, err := parser.ParseFile(v.fset, file, src, parser.ParseComments)
	if err != nil || ast.IsGenerated(parsed) {
		return nil, err
	}
	for _, d := range parsed.Decls {
		v.body = body{}
		if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
			v.body = body{from: v.offset(f.Body.Lbrace) + 1, to: v.offset(f.Body.Rbrace)}
			v.body.text = string(src[v.body.from:v.body.to])
			if f.Type.Results == nil {
				v.body.end = "return"
			}
		}
		ast.Inspect(d, v.visit)
	}
	return v.found, nil
}

type visitor struct {
	file  string
	src   []byte
	fset  *token.FileSet
	body  body
	found []*mutant
}

func (v *visitor) offset(p token.Pos) int { return v.fset.Position(p).Offset }

func (v *visitor) text(n ast.Node) string {
	return string(v.src[v.offset(n.Pos()):v.offset(n.End())])
}

func (v *visitor) add(from, to token.Pos, with string) {
	m := &mutant{file: v.file, body: v.body, from: v.offset(from), to: v.offset(to), with: with}
	m.line = v.fset.Position(from).Line
	m.old = string(v.src[m.from:m.to])
	v.found = append(v.found, m)
}

func (v *visitor) swap(at token.Pos, op token.Token) {
	if with, is := swaps[op]; is {
		v.add(at, at+token.Pos(len(op.String())), with)
	}
}

func (v *visitor) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ArrayType, *ast.StructType, *ast.InterfaceType, *ast.FuncType, *ast.ImportSpec:
		return false
	case *ast.CallExpr:
		if called(n) == "make" {
			if _, slice := n.Args[0].(*ast.ArrayType); slice {
				ast.Inspect(n.Args[1], v.visit)
			}
			return false
		}
		return !logs(n)
	case *ast.BinaryExpr:
		v.swap(n.OpPos, n.Op)
	case *ast.IncDecStmt:
		v.swap(n.TokPos, n.Tok)
	case *ast.AssignStmt:
		v.swap(n.TokPos, n.Tok)
	case *ast.BasicLit:
		v.literal(n)
	case *ast.Ident:
		if with, is := map[string]string{"true": "false", "false": "true"}[n.Name]; is {
			v.add(n.Pos(), n.End(), with)
		}
	case *ast.IfStmt:
		v.negate(n.Cond)
	case *ast.SwitchStmt:
		v.cases(n)
	case *ast.BlockStmt:
		v.drop(n.List)
	case *ast.CaseClause:
		v.drop(n.Body)
	case *ast.CommClause:
		v.drop(n.Body)
	case *ast.FuncDecl:
		v.early(n.Type, n.Body)
	case *ast.FuncLit:
		v.early(n.Type, n.Body)
	}
	return true
}

// cases negates the conditions of a switch without a tag.
func (v *visitor) cases(n *ast.SwitchStmt) {
	if n.Tag != nil {
		return
	}
	for _, s := range n.Body.List {
		for _, cond := range s.(*ast.CaseClause).List {
			v.negate(cond)
		}
	}
}

func (v *visitor) literal(n *ast.BasicLit) {
	switch n.Kind {
	case token.INT:
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil && i < 10 {
			v.add(n.Pos(), n.End(), strconv.FormatInt(i+1, 10))
		} else if err == nil {
			v.add(n.Pos(), n.End(), strconv.FormatInt(i/2, 10))
		}
	case token.FLOAT:
		v.add(n.Pos(), n.End(), "("+n.Value+"/2)")
	}
}

func (v *visitor) negate(cond ast.Expr) {
	if b, is := cond.(*ast.BinaryExpr); is && (b.Op == token.EQL || b.Op == token.NEQ) {
		return
	}
	v.add(cond.Pos(), cond.End(), "!("+v.text(cond)+")")
}

// drop removes each statement that is not a declaration, a log call or the end of a function with results.
func (v *visitor) drop(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, is := s.X.(*ast.CallExpr); is && (logs(call) || called(call) == "panic") {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.ReturnStmt:
			if len(s.Results) > 0 {
				continue
			}
		case *ast.IncDecStmt, *ast.BranchStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
		case *ast.IfStmt, *ast.RangeStmt, *ast.ForStmt:
		default:
			continue
		}
		v.add(s.Pos(), s.End(), "")
	}
}

func (v *visitor) early(t *ast.FuncType, body *ast.BlockStmt) {
	if body == nil || len(body.List) == 0 {
		return
	}
	var zeros []string
	if t.Results != nil {
		for _, field := range t.Results.List {
			for range max(1, len(field.Names)) {
				zeros = append(zeros, "*new("+v.text(field.Type)+")")
			}
		}
	}
	at := body.Lbrace + 1
	v.add(at, at, " return "+strings.Join(zeros, ", ")+";")
}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

func logs(call *ast.CallExpr) bool {
	if _, is := call.Fun.(*ast.SelectorExpr); !is || len(call.Args) == 0 {
		return false
	}
	text, is := call.Args[0].(*ast.BasicLit)
	return slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, called(call)) && is && text.Kind == token.STRING
}
