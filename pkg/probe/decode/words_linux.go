package decode

import (
	"path"
	"regexp"
	"strings"
)

const (
	// onStderr is call_event.out for standard error.
	onStderr = 2
	maxSaid  = 8 << 10
)

var (
	goFrame     = regexp.MustCompile(`(?m)^\t(\S+\.go):(\d{1,6}) `)
	pythonFrame = regexp.MustCompile(`(?m)^  File "([^"]+)", line (\d{1,6}),`)
)

// lastWords returns why a program ended: from standard error, Go's panic or fatal error or Python's exception, with
// the line of its own code, else the last line.
func lastWords(said string) (words, file, line string) {
	lineAt := func(at int) string { first, _, _ := strings.Cut(said[at:], "\n"); return strings.TrimSpace(first) }
	for _, how := range []string{"panic: ", "fatal error: "} {
		if at := strings.Index("\n"+said, "\n"+how); at >= 0 {
			file, line = firstOwn(said[at:])
			return strings.TrimSuffix(lineAt(at), " [recovered]"), file, line
		}
	}
	said = strings.TrimRight(said, " \n")
	frames := pythonFrame.FindAllStringSubmatch(said, -1)
	if len(frames) > 0 && strings.Contains(said, "Traceback (most recent call last)") {
		file, line = path.Base(frames[len(frames)-1][1]), frames[len(frames)-1][2]
	}
	return lineAt(strings.LastIndex(said, "\n") + 1), file, line
}

func firstOwn(stack string) (file, line string) {
	for _, frame := range goFrame.FindAllStringSubmatch(stack, -1) {
		if !strings.Contains(frame[1], "/runtime/") {
			return path.Base(frame[1]), frame[2]
		}
	}
	return "", ""
}
