package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/test/etwtest"
	"github.com/cniscope/cniscope/test/harness"
)

func TestWhatIsInATrace(t *testing.T) {
	start := etw.Process{Provider: etw.SystemProcess, What: etw.Start, Version: 4, PID: 7, Image: "a.exe", CommandLine: "a"}
	system := etwtest.Record(start)
	start.Provider = etw.KernelProcess
	known, unknown := etwtest.Record(start), etwtest.Record(start)
	unknown.Version = 9
	request := etw.Record{Provider: etw.Recorded()[1].GUID}
	file := etwtest.File{Size: 2048, Buffers: [][]byte{slices.Concat(
		etwtest.Entry(system), etwtest.Entry(known), etwtest.Entry(unknown), etwtest.Entry(request), etwtest.Entry(request))}}.Bytes()
	got, err := summary(bytes.NewReader(file))
	const want = "6 records, 1 processes started; system logger 1; Microsoft-Windows-Kernel-Process 2; " +
		"Microsoft-Windows-Host-Network-Service 2; not understood: Kernel-Process start v9 (1)"
	if err != nil || got != want {
		t.Errorf("%s, %v, want\n%s", got, err, want)
	}
	if _, err := summary(bytes.NewReader(file[:3000])); err == nil {
		t.Error("half of it is taken for whole")
	}
}

func TestATraceThatCannotBeRecordedLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.etl")
	_, _, err := cniscope(t, "record", "--etl", path)
	var refused *etw.RefusedError
	if err == nil && runtime.GOOS == "windows" {
		t.Skip("Windows recorded it")
	}
	if !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("an empty file was left")
	}
	harness.Check(t, os.WriteFile(path, []byte("kept"), 0o600))
	if _, _, err := cniscope(t, "record", "--etl", path); err == nil || errors.As(err, &refused) {
		t.Errorf("a file that exists: %v", err)
	}
	if kept, _ := os.ReadFile(path); string(kept) != "kept" {
		t.Error("it was replaced")
	}
}
