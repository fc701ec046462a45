package main

import (
	"fmt"
	"strings"
)

type exit struct {
	command string // without the program's name; empty: all
	code    string
	when    string
}

// exits is the source of docs/exit-codes.md and man pages; a test runs each.
func exits() []exit {
	const unreadable = "the recording is unreadable, or contains no matching call"
	return []exit{
		{"", "0", "success"},
		{"", "1", "it failed (standard error has the cause), or found a problem"},
		{"", "2", "usage error: unknown command, flag or value"},
		{"", "128+n", "second signal n before it had stopped: 130 for SIGINT, 143 for SIGTERM"},
		{"run", "0", "stopped by SIGTERM or SIGINT, or because the containerd that started it exited"},
		{"run", "1", "invalid configuration file, the kernel refused observation, or it did not stop in time"},
		{"run", "75", "another cniscope observes this node"},
		{"record", "0", "the recording is complete, until Ctrl-C or --for"},
		{"record", "1", "FILE exists or is not writable, or as for run"},
		{"record", "75", "another cniscope observes this node and does not share its events"},
		{"show", "0", "drawn or sent, and every call is within the limits, if any"},
		{"show", "1", unreadable + " to send, or a call exceeds a limit (--max-…)"},
		{"show", "2", "usage error, or the limits cannot be checked: no matching call, or the recording is incomplete"},
		{"show", "3", "the recording or spool is incomplete, and standard error names the reason; the rest is shown"},
		{"diff", "0", "compared, with or without differences"},
		{"diff", "1", unreadable},
		{"ps", "0", "calls in progress are listed, if any"},
		{"ps", "1", "cniscope is not running here, or refuses this user"},
		{"why", "0", "the node history of the pod is drawn"},
		{"why", "1", "the node history has no such pod, cniscope is not running here, or it refuses this user"},
		{"top", "0", "causes are counted, if any"},
		{"top", "1", "cniscope is not running here, or refuses this user"},
		{"baseline", "0", "the baseline is shown, exported or imported"},
		{"baseline", "1", "no baseline, no permission, or an invalid file; with --import also: cniscope is running"},
		{"doctor", "0", "every check was made and nothing was found; with --wait: it is ready"},
		{"doctor", "1", "a problem or a warning was found; with --wait: it was not ready in time"},
		{"doctor", "3", "nothing was found but a check was not possible, or the configuration file is invalid"},
		{"config check", "0", "the file is valid; with --strict also without warnings"},
		{"config check", "1", "the file is invalid or unreadable; with --strict also: there is a warning"},
		{"config print", "0", "the options are printed"},
		{"config print", "1", "the file or the environment is invalid"},
		{"install", "0", "installed, or was already; with --dry-run: installation is possible"},
		{"install", "1", "installation is not possible, and nothing was changed"},
		{"status", "0", "installed, in any state, or running"},
		{"status", "1", "neither installed nor running"},
		{"uninstall", "0", "removed; with --dry-run: removal is possible"},
		{"uninstall", "1", "not installed, or removal failed"},
		{"version", "0", "the version is printed"},
	}
}

func exitsOf(command string) (all []exit) {
	for _, e := range exits() {
		if e.command == command {
			all = append(all, e)
		}
	}
	if len(all) == 0 && command != "" {
		return exitsOf("")
	}
	return all
}

// exitStatus is a man page's section (man-pages(7)).
func exitStatus(command string) string {
	var b strings.Builder
	b.WriteString("\n.SH EXIT STATUS\n")
	for _, e := range exitsOf(command) {
		fmt.Fprintf(&b, ".TP\n%s\n%s\n", verbatim(e.code), verbatim(e.when))
	}
	return b.String()
}
