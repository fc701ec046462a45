package logging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// blocked is a pipe whose reader has stopped until open.
type blocked struct {
	bytes.Buffer
	open chan struct{}
}

func (b *blocked) Write(line []byte) (int, error) {
	<-b.open
	return b.Buffer.Write(line)
}

func TestNobodyWaitsForWhoeverReadsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := &blocked{open: make(chan struct{})}
		w := NewWriter(pipe, func(n uint64) { _, _ = fmt.Fprintf(pipe, "dropped %d\n", n) })
		const written = lines + 500
		for i := range written { // returns
			_, _ = fmt.Fprintf(w, "%d\n", i)
			if i == 0 {
				synctest.Wait() // the first one is being written
			}
		}
		close(pipe.open)
		if !w.Close(t.Context()) {
			t.Error("it did not end")
		}
		got := strings.Split(strings.TrimSpace(pipe.String()), "\n")
		if len(got) != lines+2 || got[0] != "0" || got[1] != fmt.Sprint("dropped ", written-lines-1) || got[2] != "1" {
			t.Errorf("%d lines: %q …", len(got), got[:3])
		}
	})
}

func TestAReaderThatNeverComesBackKeepsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := &blocked{open: make(chan struct{})}
		w := NewWriter(pipe, func(uint64) {})
		slog.New(slog.NewTextHandler(w, nil)).Error("ended")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if w.Close(ctx) {
			t.Error("it says that all was written")
		}
		close(pipe.open)
	})
}

func TestLinesAreWrittenInTheirOrder(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, func(uint64) {})
	log := slog.New(slog.NewTextHandler(w, nil))
	for i := range lines / 2 {
		log.Info("line", "i", i)
	}
	if !w.Close(t.Context()) {
		t.Fatal("it did not end")
	}
	for i := range lines / 2 {
		line, err := out.ReadString('\n')
		if err != nil || !strings.HasSuffix(line, fmt.Sprintf("i=%d\n", i)) {
			t.Fatalf("%d: %q, %v", i, line, err)
		}
	}
	if _, err := out.ReadByte(); !errors.Is(err, io.EOF) {
		t.Error("there is more")
	}
}

// gone is a pipe without a reader for a number of lines.
type gone struct {
	bytes.Buffer
	lines int
}

func (g *gone) Write(line []byte) (int, error) {
	if g.lines--; g.lines >= 0 {
		return 0, io.ErrClosedPipe
	}
	return g.Buffer.Write(line)
}

func TestWhatNobodyReadIsCountedAndSaidToWhoReadsNext(t *testing.T) {
	pipe := &gone{lines: 3}
	w := NewWriter(pipe, func(n uint64) { _, _ = fmt.Fprintf(pipe, "dropped %d\n", n) })
	for i := range 5 {
		_, _ = fmt.Fprintf(w, "%d\n", i)
	}
	if !w.Close(t.Context()) {
		t.Error("it did not end")
	}
	if got := pipe.String(); got != "3\ndropped 3\n4\n" || w.Dropped() != 3 {
		t.Errorf("%q, %d dropped", got, w.Dropped())
	}
}
