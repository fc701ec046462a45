package fact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/pkg/text"
)

// Listed is how many things of one kind are named.
const Listed = 8

// List joins names with commas, the first Listed of them.
func List(all []string) string {
	more := ""
	if len(all) > Listed {
		more = Sayf(" and %d more", len(all)-Listed)
		all = all[:Listed]
	}
	safe := make([]string, len(all))
	for i, s := range all {
		safe[i] = Clean(s)
	}
	return strings.Join(safe, ", ") + more
}

// Unasked reports whether an error means that we may not ask, rather than that something is
// broken.
func Unasked(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, context.Canceled) || status.Code(err) == codes.PermissionDenied
}

// Clean makes text from elsewhere safe to show.
func Clean(s string) string { return text.Clean(s, text.Bound) }

// Sayf is fmt.Sprintf with its text arguments made safe.
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
