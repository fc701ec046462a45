// Skips runs tests by gotestsum, and compares the skipped tests with list.txt. A skipped test that is not on the list
// fails the run.
//
//	skips GOTESTSUM [OPTION]... -- [TEST OPTION]... PACKAGE...
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

//go:embed list.txt
var list string

const module = "github.com/cniscope/cniscope/"

// firstPID is the kernel's first PID namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h).
const firstPID = "pid:[4026531836]"

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "skips:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run returns the exit code of the command. With code 0, an error lists skipped tests that are not on the list.
func run(command []string) (code int, err error) {
	allowed, err := parse(list)
	if err != nil {
		return 0, err
	}
	events, err := os.CreateTemp("", "cniscope-events")
	if err != nil {
		return 0, err
	}
	defer os.Remove(events.Name())
	defer events.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "GOTESTSUM_JSONFILE="+events.Name())
	if err := cmd.Run(); cmd.ProcessState == nil {
		return 0, err
	}
	skipped, err := read(events)
	if err != nil {
		return cmd.ProcessState.ExitCode(), err
	}
	unlisted := slices.DeleteFunc(slices.Clone(skipped), func(s skip) bool { return allowed.allow(s, conditions(command)) })
	fmt.Printf("%d tests skipped, %d of them not listed in test/skips/list.txt\n", len(skipped), len(unlisted))
	for _, s := range unlisted {
		err = errors.Join(err, fmt.Errorf("%s %s: not listed: %s", s.Package, s.Test, s.reason))
	}
	return cmd.ProcessState.ExitCode(), err
}

func conditions(command []string) []string {
	holds := []string{"any"}
	if slices.Contains(command, "-short") {
		holds = append(holds, "short")
	}
	if os.Geteuid() != 0 {
		holds = append(holds, "user")
	}
	if namespace, _ := os.Readlink("/proc/self/ns/pid"); namespace != firstPID {
		holds = append(holds, "own")
	}
	return holds
}

type entry struct {
	condition, pkg string
	test           *regexp.Regexp
}

type entries []entry

// parse reads lines of CONDITION, PACKAGE, TEST (a regular expression) and REASON.
func parse(text string) (entries, error) {
	var all entries
	for number, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 4 || !slices.Contains([]string{"any", "short", "user", "own"}, fields[0]) {
			return nil, fmt.Errorf("list.txt:%d: want CONDITION PACKAGE TEST REASON, got %q", number+1, line)
		}
		test, err := regexp.Compile("^(" + fields[2] + ")$")
		if err != nil {
			return nil, fmt.Errorf("list.txt:%d: %w", number+1, err)
		}
		all = append(all, entry{fields[0], fields[1], test})
	}
	return all, nil
}

func (all entries) allow(s skip, holds []string) bool {
	return slices.ContainsFunc(all, func(e entry) bool {
		return slices.Contains(holds, e.condition) && e.pkg == s.Package && e.test.MatchString(s.Test)
	})
}

type skip struct {
	Package, Test string
	reason        string
}

func read(from io.Reader) ([]skip, error) {
	var skipped []skip
	printed := map[skip]string{}
	lines := bufio.NewReader(from)
	for decoder := json.NewDecoder(lines); ; {
		var event struct {
			skip
			Action, Output string
		}
		if err := decoder.Decode(&event); err == io.EOF {
			return skipped, nil
		} else if err != nil {
			return nil, fmt.Errorf("cannot read what the tests printed: %w", err)
		}
		event.Package = strings.TrimPrefix(event.Package, module)
		switch {
		case event.Test == "":
		case event.Action == "output" && !strings.HasPrefix(strings.TrimSpace(event.Output), "---"):
			if !strings.HasPrefix(event.Output, "=== ") {
				printed[event.skip] += strings.TrimSpace(event.Output)
			}
		case event.Action == "skip":
			of := event.skip
			event.reason = printed[of]
			skipped = append(skipped, event.skip)
		}
	}
}
