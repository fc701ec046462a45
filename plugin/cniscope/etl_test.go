package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/pkg/windows/etw/etl"
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

func TestATraceIsDrawn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "incident.bin") // its name says nothing
	whole := etwtest.Seed().Bytes()
	harness.Check(t, os.WriteFile(path, whole, 0o600))
	for _, output := range [][]string{nil, {"--summary"}, {"--html"}, {"-o", "json"}} {
		out, diagnostics, err := cniscope(t, append([]string{"show", path}, output...)...)
		if err != nil || diagnostics != "" {
			t.Fatalf("%v: %v %s", output, err, diagnostics)
		}
		if len(output) == 0 {
			want := harness.Must(os.ReadFile("testdata/seed.etl.txt"))(t)
			harness.Equal(t, out, string(want), "the seed")
		}
	}
	harness.Check(t, os.WriteFile(path, whole[:len(whole)-100], 0o600))
	out, diagnostics, err := cniscope(t, "show", path)
	harness.Says(t, out+diagnostics, "CNI call", "the trace is cut off or broken at byte")
	if incomplete := (incompleteError{}); !errors.As(err, &incomplete) {
		t.Errorf("a trace that is cut: %v", err)
	}
	harness.Check(t, os.WriteFile(path, whole[:300], 0o600))
	_, _, err = cniscope(t, "show", path)
	if format := (*etl.FormatError)(nil); !errors.As(err, &format) {
		t.Errorf("%v", err)
	}
}

// Real traces, outside the repository; none has a container runtime.
func TestATraceOfAnotherMachineSaysWhatIsInIt(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/etl/*.etl*")
	if len(files) == 0 {
		t.Skip("the recordings are not in the repository")
	}
	for _, file := range files {
		path := filepath.Join(t.TempDir(), "trace.etl")
		harness.Check(t, os.WriteFile(path, etwtest.Unpacked(t, file), 0o600))
		_, _, err := cniscope(t, "show", path)
		harness.Says(t, fmt.Sprint(err), "the trace has no CNI call, because containerd.exe did not run in it; it has ", "processes")
	}
}
