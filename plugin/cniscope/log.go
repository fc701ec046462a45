package main

import (
	"io"
	"log/slog"
	"os"
)

// newLog returns the program's log. level can be changed while it runs.
//
// A pre-installed plugin has no standard error (containerd gives it /dev/null), so there
// the log goes to the system's.
func newLog(format string, level *slog.LevelVar) *slog.Logger {
	var w io.Writer = os.Stderr
	if preinstalled() {
		if system, err := systemLog(); err == nil {
			w = system
		}
	}
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
