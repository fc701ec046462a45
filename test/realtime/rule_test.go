package realtime

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
)

// durations returns the places that compare a duration of the real clock. observes is set for
// packages that observe real processes: constants must not bound their times from above.
func durations(files []*ast.File, observes bool) []token.Pos {
	var found []token.Pos
	shared := map[string]bool{} // fields and functions with durations
	// Functions share knowledge of fields and functions, so it repeats until nothing is new.
	for known := -1; known < len(shared); {
		known = len(shared)
		found = found[:0]
		for _, file := range files {
			for _, d := range file.Decls {
				if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
					s := scope{shared: shared, elapsed: map[string]bool{}, now: map[string]bool{}, name: f.Name.Name, observes: observes}
					s.learn(f.Body)
					found = append(found, s.compared(f.Body)...)
				}
			}
		}
	}
	return found
}

type scope struct {
	name     string
	observes bool
	shared   map[string]bool
	elapsed  map[string]bool
	now      map[string]bool
}

func inspect(n ast.Node, visit func(ast.Node) bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if call, is := n.(*ast.CallExpr); is && calls(call, "synctest", "Test") {
			return false
		}
		return visit(n)
	})
}

func (s *scope) learn(body *ast.BlockStmt) {
	for known := -1; known < len(s.elapsed)+len(s.now)+len(s.shared); {
		known = len(s.elapsed) + len(s.now) + len(s.shared)
		inspect(body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				s.assign(n.Lhs, n.Rhs)
			case *ast.KeyValueExpr:
				s.assign([]ast.Expr{&ast.SelectorExpr{X: n, Sel: name(n.Key)}}, []ast.Expr{n.Value})
			case *ast.ReturnStmt:
				if slices.ContainsFunc(n.Results, s.isElapsed) {
					s.shared[s.name+"()"] = true
				}
			}
			return true
		})
	}
}

func (s *scope) assign(left, right []ast.Expr) {
	for i, to := range left {
		from := right[min(i, len(right)-1)]
		elapsed, now := s.isElapsed(from), s.isNow(from)
		switch to := to.(type) {
		case *ast.Ident:
			if elapsed {
				s.elapsed[to.Name] = true
			}
			if now {
				s.now[to.Name] = true
			}
		case *ast.SelectorExpr:
			if elapsed && to.Sel != nil {
				s.shared["."+to.Sel.Name] = true
			}
		}
	}
}

func (s *scope) compared(body *ast.BlockStmt) []token.Pos {
	var found []token.Pos
	var bounds []ast.Node
	inspect(body, func(n ast.Node) bool {
		if loop, is := n.(*ast.ForStmt); is && loop.Cond != nil {
			bounds = append(bounds, loop.Cond)
		}
		if slices.Contains(bounds, n) {
			return false
		}
		if call, is := n.(*ast.CallExpr); is && (calls(call, "harness", "Equal") && slices.ContainsFunc(call.Args, s.isElapsed) || s.ordersNow(call)) {
			found = append(found, call.Pos())
		}
		if wait, is := n.(*ast.CommClause); is && gives(wait) {
			found = append(found, wait.Pos())
		}
		compare, is := n.(*ast.BinaryExpr)
		if !is || isZero(compare.Y) || !slices.Contains([]token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ}, compare.Op) {
			return true
		}
		bound := compare.X // in 2*time.Second < took
		if slices.Contains([]token.Token{token.GTR, token.GEQ}, compare.Op) {
			bound = compare.Y
		}
		ordered := !slices.Contains([]token.Token{token.EQL, token.NEQ}, compare.Op)
		if s.isElapsed(compare.X) || s.isElapsed(compare.Y) || s.observes && ordered && isConstant(bound) {
			found = append(found, compare.Pos())
		}
		return true
	})
	return found
}

// ordersNow reports whether a call compares two readings of the clock.
func (s *scope) ordersNow(call *ast.CallExpr) bool {
	of, method := call.Fun.(*ast.SelectorExpr)
	return method && slices.Contains([]string{"After", "Before", "Compare"}, of.Sel.Name) && s.isNow(of.X) && slices.ContainsFunc(call.Args, s.isNow)
}

// gives reports whether a test fails in a branch of select because seconds or less have passed.
func gives(wait *ast.CommClause) bool {
	receives, is := wait.Comm.(*ast.ExprStmt)
	if !is || !has(receives, regexp.MustCompile("^After$")) || !has(receives, regexp.MustCompile("^(Micro|Milli)?[sS]econd$")) {
		return false
	}
	return slices.ContainsFunc(wait.Body, func(s ast.Stmt) bool { return has(s, regexp.MustCompile("^(Fatal|Error)f?$")) })
}

// passing are functions and methods that return a duration if an argument or the receiver is a duration.
var passing = []string{
	"Round", "Truncate", "Abs", "Hours", "Minutes", "Seconds", "Milliseconds", "Microseconds", "Nanoseconds", // time.Duration
	"Duration", "float64", "int", "int64", "min", "max", "Min", "Max", "append", "Compare",
}

// isElapsed reports whether the expression is a duration of the real clock, or several.
func (s *scope) isElapsed(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return s.elapsed[e.Name]
	case *ast.ParenExpr:
		return s.isElapsed(e.X)
	case *ast.IndexExpr:
		return s.isElapsed(e.X)
	case *ast.SelectorExpr:
		return s.shared["."+e.Sel.Name]
	case *ast.BinaryExpr:
		return s.isElapsed(e.X) || s.isElapsed(e.Y) || e.Op == token.SUB && s.isNow(e.X) && s.isNow(e.Y)
	case *ast.CallExpr:
		called := name(e.Fun)
		if calls(e, "time", "Since") || calls(e, "time", "Until") || called != nil && s.shared[called.Name+"()"] {
			return true
		}
		of, method := e.Fun.(*ast.SelectorExpr)
		if method && of.Sel.Name == "Sub" && s.isNow(of.X) {
			return true
		}
		return called != nil && slices.Contains(passing, called.Name) && (method && s.isElapsed(of.X) || slices.ContainsFunc(e.Args, s.isElapsed))
	}
	return false
}

func isConstant(e ast.Expr) (is bool) {
	inspect(e, func(n ast.Node) bool {
		of, selects := n.(*ast.SelectorExpr)
		is = is || selects && slices.Contains([]string{"Microsecond", "Millisecond", "Second", "Minute", "Hour"}, of.Sel.Name)
		return true
	})
	return is
}

func (s *scope) isNow(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return s.now[e.Name]
	case *ast.CallExpr:
		of, method := e.Fun.(*ast.SelectorExpr)
		return calls(e, "time", "Now") || calls(e, "clock", "Monotonic") || method && s.isNow(of.X)
	}
	return false
}

// isZero reports whether the expression is 0: only simulated time passes that slowly.
func isZero(e ast.Expr) bool {
	number, is := e.(*ast.BasicLit)
	return is && number.Value == "0"
}

func calls(call *ast.CallExpr, pkg, function string) bool {
	of, is := call.Fun.(*ast.SelectorExpr)
	if !is || of.Sel.Name != function {
		return false
	}
	x, is := of.X.(*ast.Ident)
	return is && x.Name == pkg
}

func name(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	}
	return nil
}
