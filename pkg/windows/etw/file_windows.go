package etw

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

const (
	recorder = "cniscope-record"
	// Size of a file in MB; a busy node fills about 10 MB per minute.
	fileMax = 512
)

// RecordFile has Windows write a trace until ctx ends or the file is full. It needs administrator or SYSTEM; a refusal
// is a RefusedError.
func RecordFile(ctx context.Context, o FileOptions) (lost Losses, err error) {
	if Wine() {
		return lost, refused("StartTrace "+recorder, windows.ERROR_NOT_SUPPORTED)
	}
	part := o.File + ".part"
	file, err := windows.UTF16FromString(part)
	if err != nil {
		return lost, err
	}
	p := newProperties()
	if len(file) > len(p.file) {
		return lost, errors.New(o.File + ": the path is too long")
	}
	copy(p.file[:], file)
	p.mode, p.enable, p.fileMaxMB = modeSequential|modeSystemLogger, enableProcess, fileMax
	if err := vacant(part); err != nil {
		return lost, err
	}
	l, err := start(recorder, p, false)
	if err != nil {
		return lost, errors.Join(err, os.Remove(part))
	}
	if err := protect(part); err != nil { // in case Windows recreated it
		return lost, errors.Join(err, l.stop(), os.Remove(part))
	}
	o.Begun()
	for _, provider := range Recorded() {
		if err := l.enable(provider.GUID, levelVerbose, provider.keywords); err != nil {
			o.Missing(provider.Name, err)
		}
	}
	lost, err = l.record(ctx)
	return lost, errors.Join(err, os.Rename(part, o.File))
}

func (l *logger) record(ctx context.Context) (lost Losses, err error) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-tick.C:
		}
		events, buffers, err := l.losses()
		if errors.Is(err, errNoSession) {
			lost.Ended = true
			return lost, nil
		}
		if err != nil {
			return lost, errors.Join(err, l.stop())
		}
		lost.Events += events
		lost.Buffers += buffers
	}
	if err = l.stop(); errors.Is(err, errNoSession) {
		lost.Ended, err = true, nil
	}
	return lost, err
}

func vacant(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), protect(path))
}

// protect admits administrators and the system only.
func protect(path string) error {
	sd, err := windows.SecurityDescriptorFromString("D:P(A;;FA;;;SY)(A;;FA;;;BA)")
	if err != nil {
		return err
	}
	dacl, _, err := sd.DACL()
	if err != nil {
		return err
	}
	return windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT,
		windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, dacl, nil)
}
