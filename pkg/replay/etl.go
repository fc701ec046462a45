package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/settings"
	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/pkg/windows/etw/etl"
	"github.com/cniscope/cniscope/pkg/windows/winproc"
)

// windowsTrace makes a recording of a trace (.etl).
type windowsTrace struct {
	truncated, lost error
}

func (t *windowsTrace) recording(in *bufio.Reader) (io.Reader, error) {
	if begin, _ := in.Peek(etl.Magic); !etl.Is(begin) {
		return nil, nil
	}
	r, err := etl.NewReader(in)
	if err != nil {
		return nil, err
	}
	h := r.Header()
	trace := &winproc.Trace{Began: h.Began, Wall: h.Start.UnixNano(), Agents: fact.AgentNames()}
	for rec := (etw.Record{}); err == nil; {
		if err = r.Next(&rec); err == nil {
			err = trace.Take(&rec)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.truncated = err
	}
	if broken := r.Stats().Broken; broken > 0 || h.EventsLost > 0 || h.BuffersLost > 0 {
		t.lost = fmt.Errorf("the trace has gaps: Windows lost %d events and %d buffers, and %d buffers are unreadable",
			h.EventsLost, h.BuffersLost, broken)
	}
	var out bytes.Buffer
	header, err := headerOf(h)
	if err != nil {
		return nil, err
	}
	w, err := record.NewWriter(&out, header)
	if err != nil {
		return nil, err
	}
	var failed error
	err = trace.Events(func(e event.Event) {
		if failed == nil {
			failed = w.Write(e)
		}
	})
	if err != nil {
		return nil, errors.Join(err, t.truncated, t.lost)
	}
	return &out, errors.Join(failed, w.Flush())
}

func headerOf(h etl.Header) (record.Header, error) {
	boot := fmt.Sprintf("etl-%x-%x", h.Start.UnixNano(), h.Began)
	s := settings.Of(config.Default(), boot, "")
	s.Node.Name, s.Node.Host, s.Node.OS, s.Node.Arch = "", "", "windows", ""
	header, err := s.Header()
	header.Kernel, header.BootID, header.Arch = "", boot, ""
	header.Clock = record.Clock{Mono: h.Began, Wall: h.Start.UnixNano()}
	return header, err
}
