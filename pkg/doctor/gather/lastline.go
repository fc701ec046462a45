package gather

import (
	"io"
	"strings"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// logEnd is how much of a log's end is read.
const logEnd = 8 << 10

// lastLine is the last line of a container's log, without CRI's own fields (time, stream,
// tag; kubelet's cri-api, "CRI container log format"). What is no file, or has no line, has
// none.
func lastLine(path string) string {
	if path == "" {
		return ""
	}
	f, err := openLog(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	if _, err := f.Seek(max(0, info.Size()-logEnd), io.SeekStart); err != nil {
		return ""
	}
	end, err := io.ReadAll(io.LimitReader(f, logEnd))
	if err != nil {
		return ""
	}
	return parseLastLine(string(end))
}

func parseLastLine(end string) string {
	lines := strings.Split(end, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if fields := strings.SplitN(line, " ", 4); len(fields) == 4 && (fields[1] == "stdout" || fields[1] == "stderr") {
			line = strings.TrimSpace(fields[3])
		}
		if line != "" {
			return fact.Clean(line)
		}
	}
	return ""
}
