// Skips runs tests, says what failed and why, and compares the skipped tests with list.txt. A skipped test that is not
// on the list fails the run. With -v, each test has a line.
//
//	skips [-v] [OPTION OF GO TEST]... PACKAGE...
package main

import (
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

// run returns the exit code of the tests. With code 0, an error lists skipped tests that are not on the list.
func run(options []string) (code int, err error) {
	allowed, err := parse(list)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, options...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, err
	}
	seen := watcher{each: slices.Contains(options, "-v"), printed: map[test]string{}, tests: map[string]int{}}
	err = seen.read(events)
	_, _ = io.Copy(os.Stdout, events) // what was not read would hold up the tests
	_ = cmd.Wait()
	unlisted := slices.DeleteFunc(seen.skipped, func(s skip) bool { return allowed.allow(s, conditions(options)) })
	fmt.Printf("%s%d tests passed, %d failed, %d skipped, %d of them not listed in test/skips/list.txt\n", seen.failed.String(),
		seen.tests["pass"], seen.tests["fail"], seen.tests["skip"], len(unlisted))
	for _, s := range unlisted {
		err = errors.Join(err, fmt.Errorf("%s %s: not listed: %s", s.Package, s.Test, s.reason))
	}
	return cmd.ProcessState.ExitCode(), err
}

func conditions(options []string) []string {
	holds := []string{"any"}
	if slices.Contains(options, "-short") {
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
	name           *regexp.Regexp
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
		return slices.Contains(holds, e.condition) && e.pkg == s.Package && e.name.MatchString(s.Test)
	})
}

type test struct{ Package, Test string }

type skip struct {
	test
	reason string
}

// watcher prints a line for each package, with each also for each test, and what failed tests printed.
type watcher struct {
	each    bool
	printed map[test]string // by tests and packages that run
	failed  strings.Builder
	skipped []skip
	tests   map[string]int // by result
}

func (w *watcher) read(from io.Reader) error {
	for decoder := json.NewDecoder(from); ; {
		var e struct {
			test
			Action, Output string
			Elapsed        float64
		}
		if err := decoder.Decode(&e); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot read what the tests printed: %w", err)
		}
		e.Package = strings.TrimPrefix(e.Package, module)
		line := strings.TrimSpace(e.Output)
		switch {
		case e.Action == "build-output":
			w.fails(e.Output)
		case e.Action == "output" && e.Test == "" && (strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "FAIL\t")):
			fmt.Println(strings.Replace(line, module, "", 1))
		case e.Action == "output" && !strings.HasPrefix(line, "=== "):
			w.printed[e.test] += e.Output
		case e.Action == "fail" && e.Test == "":
			// A panic or a timeout leaves tests without a result.
			for of, text := range w.printed {
				if of.Package == e.Package {
					w.fails(fmt.Sprintf("FAIL %s %s\n%s", of.Package, of.Test, text))
				}
			}
		case e.Test != "" && slices.Contains([]string{"pass", "fail", "skip"}, e.Action):
			w.ends(e.test, e.Action, e.Elapsed)
		}
	}
}

func (w *watcher) ends(of test, result string, seconds float64) {
	text := w.printed[of]
	delete(w.printed, of)
	w.tests[result]++
	line := fmt.Sprintf("%s %s %s (%.2fs)\n", strings.ToUpper(result), of.Package, of.Test, seconds)
	switch {
	case result == "fail":
		w.fails(line + text)
	case w.each:
		fmt.Print(line)
	}
	if result == "skip" {
		w.skipped = append(w.skipped, skip{of, strings.TrimSpace(strings.SplitN(text, "---", 2)[0])})
	}
}

// fails prints at once, and again at the end.
func (w *watcher) fails(text string) { fmt.Fprint(io.MultiWriter(os.Stdout, &w.failed), text) }
