package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// Fails reports whether a run fails its call: it exited with an error, or its ADD wrote no JSON.
func Fails(run *model.Image) bool {
	if run.Failed() {
		return true
	}
	r := result(run)
	return r != nil && r.Invalid != "" && run.Run.Command == "ADD"
}

func failedRun(call *model.Call) (failed *model.Image) {
	for _, run := range call.Runs {
		if Fails(run) {
			failed = blame(run)
		}
	}
	return failed
}

// mute returns an ADD's last plugin if only its result was unseen.
func mute(call *model.Call) *model.Image {
	if len(call.Cut) > 0 || call.Undone-call.End > int64(time.Second) {
		return nil
	}
	last := call.Runs[len(call.Runs)-1]
	for _, run := range call.Runs {
		if r := result(run); run.Run.Command != "ADD" || (r == nil) != (run == last) {
			return nil
		}
	}
	if len(call.Runs) < 2 {
		return nil
	}
	return last
}

func bare(call *model.Call) *model.Image {
	if len(call.Runs) == 0 || call.Undone == 0 || call.Broken != nil || call.IfName != "eth0" {
		return nil
	}
	last := call.Runs[len(call.Runs)-1]
	r := result(last)
	if r == nil || Fails(last) || last.Run.Command != "ADD" || len(r.Interfaces) == 0 || len(r.IPs) > 0 {
		return nil
	}
	return last
}

// Describe says how an image failed, with its error message.
func Describe(im *model.Image) string {
	name := commandOf(im)
	said := name + " exited " + text.ExitCode(im.Code)
	if im.Signal != "" {
		said = killedBy(name, im.Signal, im.End-im.Start)
	}
	r := result(im)
	switch {
	case r == nil:
		return said + because(im)
	case r.Invalid != "" && !im.Failed():
		return fmt.Sprintf("%s wrote %s", name, r.Invalid)
	case r.Stderr != "" && im.Signal == "":
		return name + gaveUp(r.Stderr)
	case r.Stderr != "":
		return fmt.Sprintf("%s: \"%s\"", said, r.Stderr)
	case r.Invalid != "" && r.Message == "":
		return said + ": wrote " + r.Invalid
	case r.Code == 0 && r.Message == "":
		return said + because(im)
	case im.Signal == "":
		said = name + " failed"
	}
	if r.Code != 0 {
		said += fmt.Sprintf(" (code %d)", r.Code)
	}
	if r.Message != "" {
		said += fmt.Sprintf(": \"%s\"", r.Message)
	}
	return said
}

func killedBy(name, signal string, after int64) string {
	said := fmt.Sprintf("%s was killed by %s after %s", name, signal, text.Round(time.Duration(after)))
	if signal == "SIGKILL" {
		said += " (sender unknown)"
	}
	return said
}

func gaveUp(words string) string {
	if why, is := strings.CutPrefix(words, "panic: "); is {
		return " panicked: " + why
	}
	if strings.HasPrefix(words, "fatal error: ") {
		return " crashed: " + words
	}
	return fmt.Sprintf(" failed: \"%s\"", words)
}

func because(im *model.Image) string {
	var last *model.Request
	for _, r := range model.Each[*model.Request](im.Facts) {
		if r.Failed() {
			last = r
		}
	}
	if last == nil || !im.Failed() {
		return ""
	}
	return fmt.Sprintf(", because the kernel refused %s (%s)", last.Name, last.Errno())
}

func result(im *model.Image) *event.Result {
	if im.Run == nil {
		return nil
	}
	return im.Run.Result
}

// blame follows a failure to its origin: the last delegated plugin, if that failed too.
func blame(run *model.Image) *model.Image {
	last := run
	run.Walk(func(im *model.Image) {
		// After a failure, a plugin calls DEL of the delegated plugin.
		if im.Run != nil && im.Run.Command == run.Run.Command {
			last = im
		}
	})
	if Fails(last) {
		return last
	}
	return run
}

// lastCommand returns a run's last command that did not only sleep; nil if it was exec'd in the run's own process.
func lastCommand(run *model.Image) *model.Image {
	for _, last := range slices.Backward(run.Children) {
		switch {
		case last.Run != nil || last.Process == run.Process:
			return nil
		case !onlySlept(last):
			return last
		}
	}
	return nil
}

// commandThatFailed continues a failure by the run's last command, or the last of its agents.
func commandThatFailed(run *model.Image) string {
	command, whose, often := lastCommand(run), "its last command, ", ""
	switch {
	case command != nil && command.Failed():
		often = times(triedBefore(run, command) + 1)
	default:
		if command = lastOfAgents(run); command == nil {
			return ""
		}
		whose = "before that, a command of its agent, "
		if doubted(false, command.Attribution) {
			often = " (unconfirmed)"
		}
	}
	name := commandOf(command)
	return "; " + whose + name + "," + strings.TrimPrefix(Describe(command), name) + often
}

func lastOfAgents(run *model.Image) (last *model.Image) {
	for w := range run.Works() {
		w.Own.Walk(func(im *model.Image) {
			if im != w.Own && im.Run == nil && im.Ended && !im.Replaced && im.End <= run.End && (last == nil || im.End > last.End) {
				last = im
			}
		})
	}
	if last == nil || !last.Failed() {
		return nil
	}
	return last
}

func onlySlept(im *model.Image) bool {
	var slept int64
	for f, w := range model.Each[*model.Wait](im.Facts) {
		if w.Kind == event.WaitSleep {
			slept += f.When.End - f.When.Start
		}
	}
	return slept > (im.End-im.Start)/2 && !im.Failed()
}

func triedBefore(run, last *model.Image) (n int) {
	for _, c := range run.Children {
		if c != last && c.Name == last.Name && c.Code == last.Code {
			n++
		}
	}
	return n
}
