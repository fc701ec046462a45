package doctor

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// listed is how many things of one kind are named.
const listed = 8

// list names the first of several.
func list(all []string) string {
	more := ""
	if len(all) > listed {
		more = sayf(" and %d more", len(all)-listed)
		all = all[:listed]
	}
	safe := make([]string, len(all))
	for i, s := range all {
		safe[i] = clean(s)
	}
	return strings.Join(safe, ", ") + more
}

// unasked tells whether an error means that we may not ask, not that something is broken.
func unasked(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, context.Canceled) || status.Code(err) == codes.PermissionDenied
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
