package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/remotecommand"
	execerrors "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/text"
)

const saidMost = 4 << 10

// AskError is a sidecar's error; its code is one of package fleet.
type AskError struct {
	Code int
	says string
}

func (e *AskError) Error() string { return e.says }

// ErrTooLarge means an answer over its bound.
var ErrTooLarge = errors.New("its answer is too large")

// Ask writes an answer to out, and retries a busy sidecar until ctx ends. The error is an *AskError or *Refusal.
func (c *Cluster) Ask(ctx context.Context, r Reader, question []string, out io.Writer) error {
	if r.Unready != "" {
		return errors.New(r.Unready)
	}
	for {
		err := c.once(ctx, r, question, out)
		if asked, is := errors.AsType[*AskError](err); !is || asked.Code != fleet.Busy {
			return err
		}
		if !clock.Wait(ctx, time.Second) { // see docs/fleet.md
			return err
		}
	}
}

// Answer is Ask into up to most bytes.
func (c *Cluster) Answer(ctx context.Context, r Reader, question []string, most int) ([]byte, error) {
	var answer bytes.Buffer
	err := c.Ask(ctx, r, question, Limited(&answer, most))
	return answer.Bytes(), err
}

func (c *Cluster) once(ctx context.Context, r Reader, question []string, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	executor, err := c.executor(r, question)
	if err != nil {
		return err
	}
	answer, said := &gate{w: out, stop: stop}, &bytes.Buffer{}
	errs := &gate{w: &limited{w: said, left: saidMost, cut: true}}
	ended := make(chan error, 1)
	go func() {
		ended <- executor.StreamWithContext(ctx, remotecommand.StreamOptions{
			Stdout: answer, Stderr: errs,
		})
	}()
	// The SPDY fallback ignores ctx, so it is abandoned.
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	failed := answer.close()
	_ = errs.close()
	if failed != nil {
		return failed
	}
	return c.failure(ctx, r, err, said.String())
}

func (c *Cluster) executor(r Reader, question []string) (remotecommand.Executor, error) {
	request := c.core.Post().Resource("pods").Namespace(r.Namespace).Name(r.Pod).SubResource("exec").
		Param("container", fleet.Container).Param("stdout", "true").Param("stderr", "true")
	for _, word := range append([]string{fleet.Program, "ask"}, question...) {
		request = request.Param("command", word)
	}
	url := request.URL()
	spdy, err := remotecommand.NewSPDYExecutor(c.config, "POST", url)
	if err != nil {
		return nil, err
	}
	websocket, err := remotecommand.NewWebSocketExecutor(c.config, "GET", url.String())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

func (c *Cluster) failure(ctx context.Context, r Reader, err error, said string) error {
	switch exit, is := errors.AsType[execerrors.CodeExitError](err); {
	case err == nil:
		return nil
	case is:
		line := text.Clean(strings.TrimPrefix(strings.TrimSpace(said), "cniscope-reader: "), 1024)
		line = cmp.Or(line, fmt.Sprintf("its reader exited with %d", exit.Code))
		if exit.Code >= fleet.Misused && exit.Code < fleet.NotRemembered { // includes former codes
			line += "; install the same version of the chart and of kubectl cniscope"
		}
		return &AskError{exit.Code, line}
	case apierrors.IsForbidden(err), strings.Contains(err.Error(), "is forbidden: User"):
		return c.explain(ctx, apierrors.NewForbidden(corev1.Resource("pods/exec"), r.Pod, err),
			right{verb: "create", resource: "pods/exec", namespace: r.Namespace, role: Operator})
	case apierrors.IsNotFound(err):
		return errors.New("its pod is gone")
	}
	return &cleaned{err}
}

// gate passes writes until closed.
type gate struct {
	mu   sync.Mutex
	w    io.Writer
	stop context.CancelFunc // stops the exec after a failed write
	err  error
	done bool
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done {
		return 0, io.ErrClosedPipe
	}
	n, err := g.w.Write(p)
	if err != nil && g.err == nil {
		if g.err = err; g.stop != nil {
			g.stop()
		}
	}
	return n, err
}

func (g *gate) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done = true
	return g.err
}

// Limited returns a writer that fails with ErrTooLarge after most bytes.
func Limited(w io.Writer, most int) io.Writer { return &limited{w: w, left: most} }

type limited struct {
	w    io.Writer
	left int
	cut  bool
}

func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.left && !l.cut {
		return 0, ErrTooLarge
	}
	n, err := l.w.Write(p[:min(len(p), l.left)])
	if l.left -= n; err != nil {
		return n, err
	}
	return len(p), nil
}
