package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/spf13/pflag"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
	"github.com/cniscope/cniscope/pkg/show"
)

func limitFlags(flags *pflag.FlagSet, l *show.Limits) {
	flags.DurationVar(&l.Call, "max-call", 0, "exit with 1 if a call lasted longer than this, such as 500ms")
	flags.DurationVar(&l.Command, "max-command", 0, "exit with 1 if a command lasted longer than this, such as 250ms")
	flags.Func("max-commands", "exit with 1 if a call ran more commands than this `number`", atMost(&l.Commands))
	flags.Func("max-failed", "exit with 1 if more calls than this `number` failed (0: if any failed)", atMost(&l.Failed))
}

func checkLimits(l show.Limits, set func(flag string) bool) error {
	if set("max-call") && l.Call <= 0 || set("max-command") && l.Command <= 0 {
		return command.Usagef("--max-call and --max-command want a duration, such as 500ms")
	}
	return nil
}

func atMost(most **int) func(string) error {
	return func(s string) error {
		n, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			return errors.New("want a number, 0 or above")
		}
		value := int(n)
		*most = &value
		return nil
	}
}

type crossedError struct{ crossed, calls int }

func (e crossedError) Error() string {
	return fmt.Sprintf("%d calls checked, limits exceeded %s: see above", e.calls, digest.Count(e.crossed, "time"))
}

type uncheckedError struct{ error }

func (e uncheckedError) Unwrap() error { return e.error }

func (o showOptions) unchecked(err error) error {
	if err == nil || !o.limits.Set() || errors.As(err, new(crossedError)) {
		return err
	}
	return uncheckedError{err}
}

// hold compares operations with limits. incomplete is why some were not read: they may exceed one.
func (o showOptions) hold(diagnostics io.Writer, operations iter.Seq[*tracepb.ResourceSpans], incomplete error) error {
	if !o.limits.Set() {
		return nil
	}
	checked := o.limits.Check(operations)
	for _, c := range checked.Crossed {
		fmt.Fprintf(diagnostics, "✗ %s\n", c)
	}
	if more := checked.Crossings - len(checked.Crossed); more > 0 {
		fmt.Fprintf(diagnostics, "… and %d more\n", more)
	}
	if checked.Partial > 0 {
		fmt.Fprintf(diagnostics, "cniscope: %d calls were not seen in full: they may have exceeded a limit\n", checked.Partial)
	}
	switch {
	case checked.Crossings > 0:
		return crossedError{checked.Crossings, checked.Calls}
	case incomplete != nil:
		return fmt.Errorf("the limits could not be compared with all calls: %w", incomplete)
	case checked.Calls == 0:
		return errors.New("there is no call to compare with the limits")
	}
	fmt.Fprintf(diagnostics, "cniscope: %d calls, all within the limits\n", checked.Calls)
	return nil
}
