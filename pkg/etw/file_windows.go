//go:build amd64 || arm64

package etw

import (
	"cmp"
	"context"
	"errors"

	"golang.org/x/sys/windows"
)

// fileMax is how large a recording may become, in MB, unless FileOptions say otherwise: a busy node fills some 10
// in a minute.
const fileMax = 512

// RecordFile has Windows write a trace into a file until ctx ends. The error is a RefusedError where Windows does not
// allow it. Needs administrator or SYSTEM.
func RecordFile(ctx context.Context, o FileOptions) (lost Losses, err error) {
	name := cmp.Or(o.Name, "cniscope-record")
	if isWine() {
		return lost, refused("StartTrace "+name, windows.ERROR_NOT_SUPPORTED)
	}
	file, err := windows.UTF16FromString(o.File)
	if err != nil {
		return lost, err
	}
	p := newProperties()
	if len(file) > len(p.file) {
		return lost, errors.New(o.File + ": the path is too long")
	}
	copy(p.file[:], file)
	p.mode, p.enable, p.fileMaxMB = modeSequential|modeSystemLogger, enableProcess, uint32(cmp.Or(o.Megabytes, fileMax))
	l, err := start(name, p)
	if err != nil {
		return lost, err
	}
	o.Begun()
	for _, provider := range Recorded() {
		if err := l.enable(provider.GUID, levelVerbose, cmp.Or(provider.keywords, ^uint64(0))); err != nil {
			o.Missing(provider.Name, err)
		}
	}
	<-ctx.Done()
	lost.Events, lost.Buffers, err = l.losses()
	return lost, errors.Join(err, l.stop())
}
