package service

import (
	"io"
	"strings"

	"golang.org/x/sys/windows/svc/eventlog"
)

// Log opens the event log (Application). The event viewer shows texts only if EventCreate.exe is source's message
// file.
func Log(source string) (io.Writer, error) {
	l, err := eventlog.Open(source)
	if err != nil {
		return nil, err
	}
	return eventWriter{l}, nil
}

// EventCreate.exe's messages 1 to 1000 are plain text.
const (
	informs = 1
	warns   = 2
	fails   = 3
)

type events interface {
	Info(id uint32, text string) error
	Warning(id uint32, text string) error
	Error(id uint32, text string) error
}

type eventWriter struct{ to events }

// maxEvent is in characters (ReportEvent, lpStrings).
const maxEvent = 31839

func (w eventWriter) Write(line []byte) (int, error) {
	text := strings.ReplaceAll(strings.TrimSpace(string(line)), "\x00", "")
	if len(text) > maxEvent {
		text = strings.ToValidUTF8(text[:maxEvent], "")
	}
	var err error
	_, level, _ := strings.Cut(text, "level") // it precedes the message
	switch level = strings.TrimLeft(level, `":=`); {
	case strings.HasPrefix(level, "ERROR"):
		err = w.to.Error(fails, text)
	case strings.HasPrefix(level, "WARN"):
		err = w.to.Warning(warns, text)
	default:
		err = w.to.Info(informs, text)
	}
	return len(line), err
}
