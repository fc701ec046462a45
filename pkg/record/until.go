package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cniscope/cniscope/pkg/disk"
	"github.com/cniscope/cniscope/pkg/text"
)

// Open opens a recording and reads it until ctx ends, even a pipe without a writer. Errors are as of NewReader,
// or wrap ctx's cause.
func Open(ctx context.Context, path string, others ...Format) (*Reader, error) {
	return open(ctx, disk.System(), path, others...)
}

func open(ctx context.Context, on disk.FS, path string, others ...Format) (*Reader, error) {
	type opened struct {
		file disk.File
		err  error
	}
	done, o := make(chan opened, 1), opened{}
	go func() {
		f, err := disk.Open(on, path)
		done <- opened{f, err}
	}()
	select {
	case o = <-done:
	case <-ctx.Done():
		return nil, fmt.Errorf("cannot open recording %s: %w", path, context.Cause(ctx))
	}
	if o.err != nil {
		if of, is := errors.AsType[*fs.PathError](o.err); is {
			o.err = of.Err
		}
		return nil, fmt.Errorf("cannot open recording %s: %w", path, o.err)
	}
	r, err := newReader(Until(ctx, o.file), text.Clean(path, maxString), others)
	if err != nil {
		return nil, errors.Join(err, o.file.Close())
	}
	r.file = o.file
	return r, nil
}

// Until returns a reader that fails with ctx's cause when ctx ends. A hung read leaks a goroutine and 64 KiB.
func Until(ctx context.Context, in io.Reader) io.Reader {
	return &until{ctx: ctx, in: in, done: make(chan chunk, 1), buffer: make([]byte, 64<<10)}
}

type until struct {
	ctx    context.Context
	in     io.Reader
	done   chan chunk
	buffer []byte
	rest   chunk
}

type chunk struct {
	data []byte
	err  error
}

func (u *until) Read(b []byte) (int, error) {
	if err := context.Cause(u.ctx); err != nil { // first, for endless sources
		return 0, err
	}
	if len(u.rest.data) == 0 && u.rest.err == nil {
		go func() {
			n, err := u.in.Read(u.buffer)
			u.done <- chunk{u.buffer[:n], err}
		}()
		select {
		case u.rest = <-u.done:
		case <-u.ctx.Done():
			return 0, context.Cause(u.ctx)
		}
	}
	n := copy(b, u.rest.data)
	u.rest.data = u.rest.data[n:]
	if len(u.rest.data) == 0 {
		return n, u.rest.err
	}
	return n, nil
}
