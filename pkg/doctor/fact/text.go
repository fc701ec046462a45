package fact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

// Listed bounds a list.
const Listed = 8

// Cap returns Listed lines and the number of the others.
func Cap(lines []string) []string {
	if len(lines) <= Listed {
		return lines
	}
	return append(lines[:Listed:Listed], Sayf("and %d more", len(lines)-Listed))
}

// List joins up to Listed names with commas.
func List(all []string) string {
	more := ""
	if len(all) > Listed {
		more = Sayf(" and %d more", len(all)-Listed)
		all = all[:Listed]
	}
	return strings.Join(Each(all, Clean), ", ") + more
}

// Each maps all elements by say.
func Each[T any](all []T, say func(T) string) (said []string) {
	for _, one := range all {
		said = append(said, say(one))
	}
	return said
}

// Unasked means a lack of permission rather than a fault.
func Unasked(err error) bool {
	return status.Code(err) == codes.PermissionDenied || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, context.Canceled)
}

// Clean makes foreign text safe to print.
func Clean(s string) string { return text.Clean(s, text.Bound) }

// Foreign redacts text of the runtime or kubelet, which may repeat a plugin's error, except names.
func Foreign(s string, names ...string) string {
	told := redact.Ours()
	told.Name(names...)
	return Clean(told.Said(s))
}

// Sayf is fmt.Sprintf with cleaned arguments.
func Sayf(format string, args ...any) string {
	for i, a := range args {
		switch a := a.(type) {
		case string:
			args[i] = Clean(a)
		case error:
			args[i] = Clean(a.Error())
		}
	}
	return fmt.Sprintf(format, args...)
}
