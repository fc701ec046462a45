package realtime

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
)

var (
	tries  = regexp.MustCompile(`(?i)^(re)?(try|tries)|attempt`)
	failed = regexp.MustCompile(`(?i)^err`)
	length = regexp.MustCompile(`^len$`)
	skips  = regexp.MustCompile(`^Skip(f|Now)?$`)
	load   = regexp.MustCompile(`(?i)load$|loadavg|busy|starved|sysinfo|numcpu|pressure`)
)

// again returns loops that repeat an act until it succeeds, a bounded number of times.
func again(file *ast.File) (found []token.Pos) {
	ast.Inspect(file, func(n ast.Node) bool {
		repeats, until, body := false, false, (*ast.BlockStmt)(nil)
		switch loop := n.(type) {
		case *ast.RangeStmt:
			_, number := loop.X.(*ast.BasicLit)
			repeats, body = number || has(loop.X, tries) || loop.Key != nil && has(loop.Key, tries), loop.Body
		case *ast.ForStmt:
			_, counts := loop.Post.(*ast.IncDecStmt)
			repeats, body = counts && loop.Cond != nil && !has(loop.Cond, length), loop.Body
			both, several := loop.Cond.(*ast.BinaryExpr)
			until = counts && several && both.Op == token.LAND && unless(both)
		}
		if until || repeats && succeeds(body.List) {
			found = append(found, n.Pos())
		}
		return true
	})
	return found
}

// unless reports whether a condition is false after a success.
func unless(cond ast.Expr) bool {
	both, is := cond.(*ast.BinaryExpr)
	switch not, negates := cond.(*ast.UnaryExpr); {
	case negates:
		return not.Op == token.NOT
	case !is:
		return false
	case both.Op == token.LAND:
		return unless(both.X) || unless(both.Y)
	}
	return both.Op == token.NEQ && has(both.X, failed) || has(both, tries)
}

// succeeds reports whether a branch ends the loop around it without an error.
func succeeds(list []ast.Stmt) bool {
	return slices.ContainsFunc(list, func(s ast.Stmt) bool {
		branch, is := s.(*ast.IfStmt)
		if !is {
			return false
		}
		if compare, is := branch.Cond.(*ast.BinaryExpr); is && compare.Op == token.NEQ && has(compare.X, failed) {
			return false
		}
		switch last := branch.Body.List[len(branch.Body.List)-1].(type) {
		case *ast.BranchStmt:
			return last.Tok == token.BREAK
		case *ast.ReturnStmt:
			return len(last.Results) == 0 || has(last.Results[len(last.Results)-1], regexp.MustCompile(`^(nil|true)$`))
		}
		return succeeds(branch.Body.List)
	})
}

// lenient returns branches that skip a test, or leave it, because the machine is busy.
func lenient(file *ast.File) (found []token.Pos) {
	ast.Inspect(file, func(n ast.Node) bool {
		var asked []ast.Node
		var body []ast.Stmt
		switch branch := n.(type) {
		case *ast.IfStmt:
			asked, body = []ast.Node{branch.Cond}, branch.Body.List
			if branch.Init != nil {
				asked = append(asked, branch.Init)
			}
		case *ast.CaseClause:
			for _, cond := range branch.List {
				asked = append(asked, cond)
			}
			body = branch.Body
		}
		leaves := slices.ContainsFunc(body, func(s ast.Stmt) bool {
			end, is := s.(*ast.ReturnStmt)
			return has(s, skips) || is && len(end.Results) == 0
		})
		if leaves && slices.ContainsFunc(asked, func(n ast.Node) bool { return has(n, load) }) {
			found = append(found, n.Pos())
		}
		return true
	})
	return found
}

// has reports whether a name or literal within n matches.
func has(n ast.Node, what *regexp.Regexp) (does bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			does = does || what.MatchString(n.Name)
		case *ast.BasicLit:
			does = does || what.MatchString(n.Value)
		}
		return true
	})
	return does
}
