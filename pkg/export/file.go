package export

import (
	"context"
	"errors"
	"fmt"
	"os"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/otlp/otlpjson"
	"github.com/cniscope/cniscope/pkg/queue"
)

type file struct {
	path string
	max  int64
}

// NewFile returns a destination that appends OTLP JSON lines to a file of mode 0600 (OpenTelemetry,
// protocol/file-exporter). A file that would exceed maxBytes is first renamed to PATH.1, which it replaces. A failed
// Send leaves no partial line. The file may be moved between Sends. Nothing is synced.
func NewFile(path string, maxBytes int64) queue.Sender { return &file{path, maxBytes} }

func (e *file) Send(_ context.Context, operations [][]byte) error {
	var all tracepb.TracesData
	for _, data := range operations {
		if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(data, &all); err != nil {
			return &queue.RejectedError{Err: err}
		}
	}
	data, err := otlpjson.Lines(all.GetResourceSpans())
	if err != nil {
		return &queue.RejectedError{Err: err}
	}
	f, size, err := open(e.path)
	if err != nil {
		return err
	}
	if size > 0 && size+int64(len(data)) > e.max {
		// Windows cannot rename an open file.
		if err := errors.Join(f.Close(), os.Rename(e.path, e.path+".1")); err != nil {
			return fmt.Errorf("rotate the OTLP file: %w", err)
		}
		if f, size, err = open(e.path); err != nil {
			return err
		}
	}
	if _, err := f.Write(data); err != nil {
		err = fmt.Errorf("write the OTLP file: %w", err)
		if undo := f.Truncate(size); undo != nil {
			err = errors.Join(err, fmt.Errorf("take back what was written of it: %w", undo))
		}
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

func (e *file) Shutdown(context.Context) error { return nil }

// open opens a file for appending and returns its size. It refuses a link, or another user's file: any user who can
// write to the directory could have made it.
func open(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|openFlags, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open the OTLP file: %w%s", err, remedy(err))
	}
	info, err := f.Stat()
	if err == nil {
		err = foreign(info)
	}
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("is not a regular file: name one, or one that does not exist")
	case info.Mode().Perm()&0o077 != 0:
		err = f.Chmod(0o600)
	}
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open the OTLP file %s: %w", path, err), f.Close())
	}
	return f, info.Size(), nil
}

func remedy(err error) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ": make its folder"
	case isLink(err):
		return ": it is a link, name the file itself"
	}
	return ""
}
