package disk

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// throughDisk lists packages that use FS for all files, with exempt files that do not touch the node's disk.
var throughDisk = map[string][]string{
	"spool":   nil,
	"record":  {"host.go", "host_other.go", "host_windows.go"}, // the machine's description
	"config":  nil,
	"install": {"node_linux.go", "node_other.go"}, // D-Bus, containerd's socket, pkg/lock's file, statfs
}

// harmless lists names that touch no file.
var harmless = map[string][]string{
	"os": {
		"O_RDONLY", "O_RDWR", "O_WRONLY", "O_CREATE", "O_EXCL", "ErrClosed", "ErrNotExist", "Geteuid", "Getenv",
		"Environ",
	},
	"filepath":  {"Join", "Dir", "Base", "Clean", "IsAbs", "Match", "Separator", "ToSlash"},
	"syscall":   {},
	"unix":      {},
	"ioutil":    {},
	"private":   {},
	"buildinfo": {"Read"},
}

// errno matches error numbers, which touch no file.
var errno = regexp.MustCompile(`^E[A-Z0-9]+$`)

// No sweep can fail a call that bypasses FS.
func TestNoCallGoesPastTheInterface(t *testing.T) {
	for dir, exempt := range throughDisk {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || slices.Contains(exempt, filepath.Base(file)) {
				continue
			}
			set := token.NewFileSet()
			parsed := harness.Must(parser.ParseFile(set, file, nil, parser.SkipObjectResolution))(t)
			ast.Inspect(parsed, func(n ast.Node) bool {
				selector, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				pkg, ok := selector.X.(*ast.Ident)
				if !ok {
					return true
				}
				allowed, watched := harmless[pkg.Name]
				isErrno := pkg.Name == "syscall" && errno.MatchString(selector.Sel.Name)
				if watched && !isErrno && !slices.Contains(allowed, selector.Sel.Name) {
					t.Errorf("%s: %s.%s goes past disk.FS", set.Position(n.Pos()), pkg.Name, selector.Sel.Name)
				}
				return true
			})
		}
	}
}
