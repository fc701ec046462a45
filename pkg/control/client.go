package control

import (
	"context"
	"errors"
	"io"

	"github.com/cniscope/cniscope/pkg/baseline"
)

// ErrNotRunning means that no cniscope answers.
var ErrNotRunning = errors.New("no cniscope is running on this node")

// Client queries the cniscope with state directory Dir.
type Client struct{ Dir string }

func (c Client) reader() Reader { return Reader{Address(c.Dir)} }

// Calls returns calls in progress. The error wraps ErrNotRunning, or fs.ErrPermission unless root.
func (c Client) Calls(ctx context.Context) (calls []Call, err error) {
	err = c.reader().decode(ctx, "/calls", nil, &calls)
	return calls, err
}

// Node returns the running cniscope's state. Errors as for Calls.
func (c Client) Node(ctx context.Context) (n Node, err error) {
	err = c.reader().decode(ctx, "/node", nil, &n)
	return n, err
}

// Recent returns facts about finished calls. Errors as for Calls.
func (c Client) Recent(ctx context.Context) (r Recent, err error) {
	err = c.reader().decode(ctx, "/recent", nil, &r)
	return r, err
}

// Baseline returns the node's baselines. Errors as for Calls.
func (c Client) Baseline(ctx context.Context) (*baseline.Document, error) {
	data, err := c.reader().all(ctx, "/baseline", nil)
	if err != nil {
		return nil, err
	}
	return baseline.Parse(data)
}

// Record records until ctx ends. Errors as for Calls.
func (c Client) Record(ctx context.Context) (io.ReadCloser, error) {
	return c.reader().get(ctx, "/record", nil)
}
