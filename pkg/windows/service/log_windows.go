package service

import (
	"io"
	"strings"

	"golang.org/x/sys/windows/svc/eventlog"
)

// Log opens the event log (Application). The event viewer shows texts only if source is registered with
// EventCreate.exe as its message file.
func Log(source string) (io.Writer, error) {
	l, err := eventlog.Open(source)
	if err != nil {
		return nil, err
	}
	return eventWriter{l}, nil
}

// Ids of events by severity: EventCreate.exe, whose messages are plain text, has 1 to 1000.
const (
	informs = 1
	warns   = 2
	fails   = 3
)

// events is the needed part of the event log.
type events interface {
	Info(id uint32, text string) error
	Warning(id uint32, text string) error
	Error(id uint32, text string) error
}

// eventWriter writes log lines as events of their level.
type eventWriter struct{ to events }

// maxEvent bounds the text of an event, in characters (ReportEvent, lpStrings).
const maxEvent = 31839

func (w eventWriter) Write(line []byte) (int, error) {
	text := strings.ReplaceAll(strings.TrimSpace(string(line)), "\x00", "")
	if len(text) > maxEvent {
		text = strings.ToValidUTF8(text[:maxEvent], "")
	}
	var err error
	_, level, _ := strings.Cut(text, "level") // the level precedes the message
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
