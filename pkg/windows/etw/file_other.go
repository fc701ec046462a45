//go:build !windows

package etw

import (
	"context"
	"errors"
)

// RecordFile fails with a RefusedError.
func RecordFile(context.Context, FileOptions) (Losses, error) {
	return Losses{}, &RefusedError{Doing: "StartTrace", Err: errors.ErrUnsupported, Remedy: remedyUnsupported}
}
