package functions

import "strings"

// standard reports whether a function belongs to the standard library or its extensions. Paths of others begin with a
// host or "main".
func standard(function string) bool {
	path, _, nested := strings.Cut(function, "/")
	if !nested {
		path, _, _ = strings.Cut(function, ".")
	}
	if strings.Contains(path, ".") {
		return strings.HasPrefix(function, "golang.org/x/")
	}
	switch path {
	case "archive", "bufio", "bytes", "cmp", "compress", "container", "context", "crypto", "database", "debug", "embed",
		"encoding", "errors", "expvar", "flag", "fmt", "go", "hash", "html", "image", "index", "internal", "io", "iter",
		"log", "maps", "math", "mime", "net", "os", "path", "plugin", "reflect", "regexp", "runtime", "slices", "sort",
		"strconv", "strings", "structs", "sync", "syscall", "testing", "text", "time", "unicode", "unique", "unsafe",
		"vendor", "weak":
		return true
	}
	return !strings.Contains(function, ".") // assembly
}
