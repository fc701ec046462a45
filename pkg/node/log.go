package node

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/pkg/logging"
)

// logFile never waits for the log's reader. A pre-installed plugin, whose standard error is /dev/null, and Windows'
// service use the system's log.
type logFile struct {
	to    io.Writer
	lines *logging.Writer
	limit *logging.Limit
	// before counts lines left out under former formats.
	before uint64
	// direct bypasses lines, to report its losses.
	direct atomic.Pointer[slog.Logger]
	level  *slog.LevelVar
}

func openLog() *logFile {
	if unattended() {
		if system, err := systemLog(); err == nil {
			return newLogFile(system)
		}
	}
	return newLogFile(os.Stderr)
}

func unattended() bool { return Preinstalled() || isService() }

func newLogFile(to io.Writer) *logFile {
	f := &logFile{to: to, level: &slog.LevelVar{}}
	f.lines = logging.NewWriter(f.to, func(dropped uint64) {
		f.direct.Load().Warn("log lines lost, the reader of the log is too slow", "lost", dropped)
	})
	f.logger("text")
	return f
}

func (f *logFile) logger(format string) *slog.Logger {
	handler := func(w io.Writer) slog.Handler {
		options := &slog.HandlerOptions{Level: f.level}
		if format == "json" {
			return slog.NewJSONHandler(w, options)
		}
		return slog.NewTextHandler(w, options)
	}
	if f.limit != nil {
		f.limit.Flush()
		f.before += f.limit.LeftOut()
	}
	f.direct.Store(slog.New(handler(f.to)))
	f.limit = logging.NewLimit(handler(f.lines))
	return slog.New(f.limit)
}

func (f *logFile) lost() map[string]uint64 {
	return map[string]uint64{"limit": f.before + f.limit.LeftOut(), "reader": f.lines.Dropped()}
}

// close writes the queued lines, then why the program ends, within a second.
func (f *logFile) close(why error) {
	f.limit.Flush()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if f.lines.Close(ctx) && why != nil {
		f.direct.Load().Error("ended", "error", why)
	}
}
