package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cniscope/cniscope/pkg/baseline"
)

// ErrNotRunning means that no cniscope answers.
var ErrNotRunning = errors.New("no cniscope is running on this node")

// Client queries the cniscope whose state directory is Dir.
type Client struct{ Dir string }

// Calls returns the calls in progress. The error wraps ErrNotRunning, or fs.ErrPermission if the caller is not root.
func (c Client) Calls(ctx context.Context) (calls []Call, err error) {
	err = c.decode(ctx, "/calls", &calls)
	return calls, err
}

// Node returns the state of the running cniscope. Errors as for Calls.
func (c Client) Node(ctx context.Context) (n Node, err error) {
	err = c.decode(ctx, "/node", &n)
	return n, err
}

// Recent returns the remembered facts about finished calls. Errors as for Calls.
func (c Client) Recent(ctx context.Context) (r Recent, err error) {
	err = c.decode(ctx, "/recent", &r)
	return r, err
}

// Baseline returns the node's baselines. Errors as for Calls.
func (c Client) Baseline(ctx context.Context) (*baseline.Document, error) {
	body, err := c.get(ctx, "/baseline")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, baseline.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of the running cniscope: %w", err)
	}
	return baseline.Parse(data)
}

func (c Client) decode(ctx context.Context, path string, to any) error {
	body, err := c.get(ctx, path)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(io.LimitReader(body, 64<<20)).Decode(to); err != nil {
		return fmt.Errorf("reading the answer of the running cniscope: %w", err)
	}
	return nil
}

// Record starts a recording, which ends with ctx. Errors as for Calls.
func (c Client) Record(ctx context.Context) (io.ReadCloser, error) { return c.get(ctx, "/record") }

func (c Client) get(ctx context.Context, path string) (io.ReadCloser, error) {
	return ask(ctx, Address(c.Dir), path, asRoot)
}
