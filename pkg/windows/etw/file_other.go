//go:build !windows || !(amd64 || arm64)

package etw

import "context"

// RecordFile fails with a RefusedError.
func RecordFile(context.Context, FileOptions) (Losses, error) {
	return Losses{}, &RefusedError{Why: RefusedUnsupported, Doing: "this is not Windows"}
}
