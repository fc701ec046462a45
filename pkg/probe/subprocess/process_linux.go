// Package subprocess runs the process connector in its own process. A short-lived program is readable for about 1 ms;
// a busy reader is tens of ms late.
package subprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/child"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/connector"
	"github.com/cniscope/cniscope/pkg/record"
)

const (
	openWithin            = 10 * time.Second
	sendWithin, endWithin = time.Second, 2 * time.Second
	// bytes, for about 1,000 programs
	pipe      = 1 << 20
	lookEvery = 200 * time.Millisecond
)

// Process is the subprocess.
type Process struct {
	options connector.Options
	cmd     *child.Process
	orders  *os.File
	events  *os.File
	says    *os.File
	unwatch func()

	sending sync.Mutex // orders
	mu      sync.Mutex
	stats   connector.Stats
}

// order is a line to the subprocess: options, then changes.
type order struct {
	Options *connector.Options `json:"options,omitempty"`
	Anchors []anchor.Anchor    `json:"anchors"`
	Busy    bool               `json:"busy"`
}

// said is a line from it: whether it observes, then counters.
type said struct {
	Need   string           `json:"need,omitempty"`
	Remedy string           `json:"remedy,omitempty"`
	Error  string           `json:"error,omitempty"`
	Stats  *connector.Stats `json:"stats,omitempty"`
}

// Start starts the command, which calls Serve. Its errors are connector.Open's.
func Start(o connector.Options, command []string) (_ *Process, err error) {
	c, err := child.Start(command, 2)
	if err != nil {
		return nil, fmt.Errorf("process connector: starting %s: %w", command[0], err)
	}
	p := &Process{options: o, unwatch: func() {}, cmd: c, orders: c.In, events: c.Out[0], says: c.Out[1]}
	defer func() {
		if err != nil {
			_ = p.Close()
		}
	}()
	if raw, err := p.events.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipe) })
	}
	if err := p.tell(order{Options: &o}); err != nil {
		return nil, err
	}
	if o.Anchors != nil {
		p.unwatch = o.Anchors.Watch(func(now []anchor.Anchor) { _ = p.tell(order{Anchors: now}) })
	}
	return p, p.opened()
}

func (p *Process) tell(o order) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	_ = p.orders.SetWriteDeadline(time.Now().Add(sendWithin))
	return json.NewEncoder(p.orders).Encode(o)
}

func (p *Process) opened() error {
	first := make(chan error, 1)
	go func() {
		defer p.says.Close()
		says := json.NewDecoder(p.says)
		var s said
		if err := says.Decode(&s); err != nil {
			first <- fmt.Errorf("process connector: its process said nothing: %w", err)
			return
		}
		if s.Need != "" {
			refused := &connector.UnsupportedError{Need: s.Need, Remedy: s.Remedy}
			if s.Error != "" {
				refused.Err = errors.New(s.Error)
			}
			first <- refused
			return
		}
		first <- nil
		p.listen(says)
	}()
	select {
	case err := <-first:
		return err
	case <-time.After(openWithin):
		return errors.New("process connector: its process does not say whether it observes")
	}
}

func (p *Process) listen(says *json.Decoder) {
	told := false
	for {
		var s said
		if says.Decode(&s) != nil || s.Stats == nil {
			return
		}
		p.mu.Lock()
		p.stats = *s.Stats
		p.mu.Unlock()
		if !told {
			p.options.Log.Info("observing plugins and commands by the process connector, not system calls",
				"in_progress", s.Stats.Followed, "by_pid", p.cmd.Process.Pid)
			told = true
		}
	}
}

// Run delivers existing processes, and events until ctx ends.
func (p *Process) Run(ctx context.Context, sink event.Sink) error {
	defer context.AfterFunc(ctx, func() {
		_ = p.orders.Close()
		time.AfterFunc(endWithin, func() { _ = p.cmd.Process.Kill() }) // no effect after the exit
	})()
	over := make(chan struct{})
	defer close(over)
	go p.tellWhenBusy(over)
	r, err := record.NewReader(p.events)
	for err == nil {
		var e event.Event
		if e, err = r.Next(); err == nil {
			sink(e)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, record.ErrNotRecording) {
		err = nil
	}
	return fmt.Errorf("process connector: its process has ended: %w", errors.Join(err, p.cmd.Wait()))
}

func (p *Process) tellWhenBusy(over <-chan struct{}) {
	if p.options.Busy == nil {
		return
	}
	was := false
	for every := time.NewTicker(lookEvery); ; {
		select {
		case <-over:
			every.Stop()
			return
		case <-every.C:
		}
		if now := p.options.Busy(); now != was && p.tell(order{Busy: now}) == nil {
			was = now
		}
	}
}

// Stats returns recent counters. It is safe for concurrent use.
func (p *Process) Stats() connector.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Close ends the process.
func (p *Process) Close() error {
	p.unwatch()
	_ = p.orders.Close()
	late := time.AfterFunc(endWithin, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	defer p.events.Close()
	go func() { _, _ = io.Copy(io.Discard, p.events) }() // drains
	if p.cmd.ProcessState == nil {
		if err := p.cmd.Wait(); err != nil {
			return fmt.Errorf("process connector: its process: %w", err)
		}
	}
	return nil
}
