package record

import (
	"context"
	"fmt"
	"io"

	"github.com/cniscope/cniscope/pkg/disk"
)

// OpenUntil is Open until ctx ends, even for a pipe without a writer. Errors then wrap ctx's cause.
func OpenUntil(ctx context.Context, path string) (*Reader, error) {
	type opened struct {
		file disk.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := disk.Open(disk.System{}, path)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		return over(o.file, o.err, func(in io.Reader) io.Reader { return Until(ctx, in) }, path)
	case <-ctx.Done():
		return nil, fmt.Errorf("read the recording: %s: %w", path, context.Cause(ctx))
	}
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
