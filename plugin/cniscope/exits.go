package main

import (
	"fmt"
	"strings"
)

// exit is a code that a command may end with, and when it does.
type exit struct {
	command string // without the program's name; empty: every command
	code    string
	when    string
}

// exits are all there are: docs/exit-codes.md and the man pages are written from them, and a test ends each
// command with each of its codes.
func exits() []exit {
	const unreadable = "the recording cannot be read, holds no such call"
	return []exit{
		{"", "0", "it did what it was asked to"},
		{"", "1", "it could not, or found what it was asked to look for; the reason is on standard error"},
		{"", "2", "the arguments are wrong: an unknown command, flag or value"},
		{"", "128+n", "a second signal n came before it had ended: 130 for SIGINT, 143 for SIGTERM"},
		{"run", "0", "it was told to end (SIGTERM, SIGINT), or containerd, which had started it, ended"},
		{"run", "1", "the options cannot be used, the kernel does not let it observe, or it did not end in time"},
		{"run", "75", "another cniscope observes this node"},
		{"record", "0", "the recording is complete, until Ctrl-C or --for"},
		{"record", "1", "FILE exists or cannot be written, or as for run"},
		{"record", "75", "another cniscope observes this node and does not let others look on"},
		{"show", "0", "it is drawn or sent, and every call is within the limits, if there are any"},
		{"show", "1", unreadable + " to send, or a call exceeds a limit (--max-…)"},
		{"show", "2", "the arguments are wrong, or the limits cannot be checked: there is no such call, or not all could be read"},
		{"show", "3", "with --last: a part of the spool cannot be read, and standard error names it; what can be read is shown"},
		{"diff", "0", "they are compared, whatever differs"},
		{"diff", "1", "a recording cannot be read, or holds no such call"},
		{"ps", "0", "the calls are listed, also where there is none"},
		{"ps", "1", "no cniscope runs here, or it may not be asked"},
		{"why", "0", "what is remembered of the pod is drawn"},
		{"why", "1", "nothing is remembered of such a pod, no cniscope runs here, or it may not be asked"},
		{"top", "0", "they are counted, also where there is none"},
		{"top", "1", "no cniscope runs here, or it may not be asked"},
		{"baseline", "0", "what is known is shown, exported or imported"},
		{"baseline", "1", "nothing is known, it may not be asked, or the file cannot be used; with --import also: cniscope runs"},
		{"doctor", "0", "every check was made and nothing was found; with --wait ready: the node's network is ready"},
		{"doctor", "1", "a problem or a warning was found; with --wait ready: the network was not ready in time"},
		{"doctor", "2", "nothing was found but a check could not be made, the options cannot be read, or the arguments are wrong"},
		{"config check", "0", "the file can be used; with --strict without a warning, too"},
		{"config check", "1", "the file has a mistake, or cannot be read; with --strict also: there is a warning"},
		{"config print", "0", "the options are printed"},
		{"config print", "1", "the file or the environment has a mistake"},
		{"install", "0", "it is installed, or was; with --dry-run: it could be"},
		{"install", "1", "it cannot be installed, and nothing was changed"},
		{"status", "0", "it is installed, whatever state it is in"},
		{"status", "1", "it is not installed"},
		{"uninstall", "0", "it is removed; with --dry-run: it could be"},
		{"uninstall", "1", "it is not installed, or cannot be removed"},
		{"version", "0", "the version is printed"},
	}
}

// exitsOf are the codes of a command; those of every command for one that has none of its own.
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

// exitStatus is the section of a man page (man-pages(7)).
func exitStatus(command string) string {
	var b strings.Builder
	b.WriteString("\n.SH EXIT STATUS\n")
	for _, e := range exitsOf(command) {
		fmt.Fprintf(&b, ".TP\n%s\n%s\n", verbatim(e.code), verbatim(e.when))
	}
	return b.String()
}

// exitTable is the table of docs/exit-codes.md.
func exitTable() string {
	var b strings.Builder
	b.WriteString("| command | exit code | when |\n|---|---|---|\n")
	for _, e := range exits() {
		command := "`" + e.command + "`"
		if e.command == "" {
			command = "every command"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", command, e.code, e.when)
	}
	return b.String()
}
