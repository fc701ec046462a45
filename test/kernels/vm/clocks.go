//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/test/kernels/traced"
)

const (
	taker    = "/collector"
	takesAt  = "127.0.0.1:4317"
	takenAll = "/tmp/taken.json"
	observes = `
[nri]
enabled = false
[state]
dir = "/tmp/run"
[sampling]
per_second = 0
[export.otlp]
endpoint = "http://` + takesAt + `"
[export.spool]
dir = "/tmp/spool"
`
)

const year = 365 * 24 * time.Hour

// A turn is one step of the clock.
type turn struct {
	name string
	do   func() error
}

var turns = []turn{
	{"an hour ahead", func() error { return setBy(time.Hour) }},
	{"an hour back", func() error { return setBy(-time.Hour) }},
	{"ten years ahead", func() error { return setBy(10 * year) }},
	{"ten years back", func() error { return setBy(-10 * year) }},
	{"suspended", suspend},
	{"an hour back again", func() error { return setBy(-time.Hour) }},
}

func setBy(d time.Duration) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
		return err
	}
	to := unix.NsecToTimespec(now.Nano() + int64(d))
	return unix.ClockSettime(unix.CLOCK_REALTIME, &to)
}

var errNoSuspend = errors.New("it cannot be suspended")

const asleep = 5 * time.Second

func suspend() error {
	if states, _ := os.ReadFile("/sys/power/state"); !slices.Contains(strings.Fields(string(states)), "mem") {
		return fmt.Errorf("%w: /sys/power/state has %q", errNoSuspend, states)
	}
	const alarm = "/sys/class/rtc/rtc0/wakealarm"
	for _, at := range []string{"0", fmt.Sprintf("+%d", int(asleep.Seconds()))} {
		if err := os.WriteFile(alarm, []byte(at), 0); err != nil {
			return fmt.Errorf("%w: %w", errNoSuspend, err)
		}
	}
	before := suspended()
	if err := os.WriteFile("/sys/power/state", []byte("mem"), 0); err != nil {
		return fmt.Errorf("%w: %w", errNoSuspend, err)
	}
	if d := suspended() - before; d < asleep/2 {
		return fmt.Errorf("it was suspended for %v, as its clocks say", d)
	}
	return nil
}

func suspended() time.Duration {
	var boot unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) // the clock exists
	return time.Duration(boot.Nano() - clock.Monotonic())
}

// stepping is a machine whose clock is set while plugins run and cniscope observes.
type stepping struct {
	*running
	to   io.Writer
	toml string // the program's options
	runs []traced.Run
}

func stepClocks(to io.Writer, options string, _ int) error {
	if err := loopback(true); err != nil {
		return err
	}
	s := &stepping{to: to, toml: observes}
	if byConnector(options) {
		s.toml += connected
	}
	var err error
	if s.running, err = startProgram(cniscope, s.toml); err != nil {
		return err
	}
	if err = s.all(); err != nil {
		err = fmt.Errorf("%w\nit said:\n%s", err, s.said.String())
	}
	return errors.Join(err, s.tell(), s.stop())
}

func (s *stepping) all() error {
	for i, t := range turns {
		err := s.turn(i, t)
		if errors.Is(err, errNoSuspend) {
			fmt.Fprintf(s.to, "\nnot %s: %v\n", t.name, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		fmt.Fprintf(s.to, "\nturned %s\n", t.name)
	}
	return nil
}

// turn makes calls before, across and after a step; the first cannot be sent before it.
func (s *stepping) turn(i int, t turn) error {
	sandbox := func(when string) string { return fmt.Sprintf("%s-%d", when, i) }
	before, across, after := newOperation(sandbox("before")), newOperation(sandbox("across")), newOperation(sandbox("after"))
	if err := s.whole(before, "tree"); err != nil {
		return err
	}
	c, err := across.begin("across")
	if err != nil {
		return err
	}
	if err := s.until("the call is known", func() bool { return s.listed(across.sandbox) != nil }); err != nil {
		return err
	}
	failed := t.do()
	if err := errors.Join(s.ages(c), s.reload(i)); err != nil {
		return err
	}
	r, err := c.end()
	if err != nil {
		return err
	}
	s.runs = append(s.runs, r)
	if err := s.whole(across, "tree"); err != nil { // the next plugin of the chain
		return err
	}
	if err := s.whole(after, "tree"); err != nil {
		return err
	}
	if err := s.take(func() error {
		return s.until("all is sent", func() bool { return s.sent(before, across, after) })
	}); err != nil {
		return err
	}
	return errors.Join(failed, s.memory(), s.rests())
}

type operation struct {
	sandbox    string
	mono, wall int64
}

func newOperation(sandbox string) *operation { return &operation{sandbox: sandbox} }

type calling struct {
	*exec.Cmd
	traced.Run
	stdin io.Closer
}

// begin starts a plugin, which runs until its standard input ends or longer.
func (o *operation) begin(plugin string) (*calling, error) {
	cmd := command(plugin)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains([]string{"TRACEPARENT", "CNI_CONTAINERID", "CNI_NETNS"}, name)
	})
	cmd.Env = append(cmd.Env, "CNI_CONTAINERID="+o.sandbox, "CNI_NETNS=/run/netns/"+o.sandbox)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if o.mono == 0 {
		o.mono, o.wall = clock.Anchor()
	}
	c := &calling{Cmd: cmd, stdin: in, Run: traced.Run{Sandbox: o.sandbox, Plugin: plugin, Mono: o.mono, Wall: o.wall}}
	c.Began[0] = clock.Monotonic()
	err = cmd.Start()
	c.Began[1] = clock.Monotonic()
	if err == nil {
		_, err = io.WriteString(in, configured)
	}
	return c, err
}

func (c *calling) end() (traced.Run, error) {
	c.Ended[0] = clock.Monotonic()
	_ = c.stdin.Close()
	err := c.Wait()
	c.Ended[1] = clock.Monotonic()
	return c.Run, err
}

func (s *stepping) whole(o *operation, plugin string) error {
	c, err := o.begin(plugin)
	if err != nil {
		return err
	}
	r, err := c.end()
	if r.Plugin != "across" {
		r.Ended[0] = r.Began[1] // does not wait for its input
	}
	s.runs = append(s.runs, r)
	return err
}

// across runs a command before and after its standard input ends.
func across() int {
	for range 2 {
		if exec.Command(helper, "0").Run() != nil {
			return 1
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	return 0
}

func (s *stepping) take(do func() error) error {
	taking := exec.Command(taker, takesAt, takenAll)
	taking.Stderr = os.Stderr
	if err := taking.Start(); err != nil {
		return err
	}
	err := do()
	return errors.Join(err, taking.Process.Signal(unix.SIGTERM), taking.Wait())
}

// taken returns the spans sent so far.
func taken() (all []traced.Span) {
	data, _ := os.ReadFile(takenAll)
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one traced.Span
		if json.Unmarshal(lines.Bytes(), &one) == nil {
			all = append(all, one)
		}
	}
	return all
}

func (s *stepping) sent(all ...*operation) bool {
	spans := taken()
	for _, o := range all {
		if !slices.ContainsFunc(spans, func(s traced.Span) bool { return s.Sandbox == o.sandbox && s.Kind == "operation" }) {
			return false
		}
	}
	return true
}

func (s *stepping) tell() error {
	for _, r := range s.runs {
		if err := line(s.to, "called", r); err != nil {
			return err
		}
	}
	for _, t := range taken() {
		if err := line(s.to, "span", t); err != nil {
			return err
		}
	}
	return nil
}

func line(to io.Writer, kind string, what any) error {
	data, err := json.Marshal(what)
	if err == nil {
		_, err = fmt.Fprintf(to, "\n%s %s\n", kind, data)
	}
	return err
}
