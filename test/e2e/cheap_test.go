//go:build linux

package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
	"github.com/cniscope/cniscope/test/tied"
)

// An ordinary pod (loopback, bridge, host-local, portmap; setup and teardown) costs a backend up to 25 spans, 20 KB,
// and 5 KB with gzip, with [trace] fold_commands. CNISCOPE_KEEP names a file for a recording:
// plugin/cniscope/testdata/ordinary-pod.rec.gz is one.
func TestAnOrdinaryPodIsCheap(t *testing.T) {
	s := setRig(t, false, rig.Options{Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Portmap()}}}})
	file, recording := filepath.Join(t.TempDir(), "spans.jsonl"), filepath.Join(t.TempDir(), "pod.rec.gz")
	// A pod delayed by a busy machine is out of scope.
	s.startScope(scope.Options{TOML: unhurried + fmt.Sprintf("[export.file]\npath = %q\n[trace]\nfold_commands = true\n", file)})
	record := exec.CommandContext(s.ctx, program, "record", recording, "--config", s.scope.Config())
	harness.Check(t, tied.Start(record))
	harness.Eventually(t, func() error { _, err := os.Stat(recording); return err })
	id, err := s.rig.RunPod(s.ctx, rig.PodOptions{
		Namespace: "shop", Name: "web-0", Labels: map[string]string{"app": "web"},
		HostPorts: []rig.HostPort{{Host: 28090, Container: 80}},
	})
	harness.Check(t, err)
	harness.Check(t, s.rig.RemovePod(s.ctx, id))
	var lines [][]byte
	harness.Eventually(t, func() error {
		data, err := os.ReadFile(file)
		if lines = bytes.Split(bytes.TrimSpace(data), []byte("\n")); err != nil || len(lines) != 2 {
			return fmt.Errorf("%d operations are there: %w", len(lines), err)
		}
		return nil
	})
	harness.Check(t, record.Process.Signal(os.Interrupt))
	harness.Check(t, record.Wait())
	spans, size, zipped := 0, 0, 0
	for _, line := range lines {
		n, bytes, small := cost(t, line)
		spans, size, zipped = spans+n, size+bytes, zipped+small
	}
	t.Logf("%d spans, %d bytes of OTLP, %d with gzip", spans, size, zipped)
	if spans > 25 || size > 20_000 || zipped > 5_000 {
		t.Errorf("an ordinary pod costs %d spans, %d bytes, %d with gzip", spans, size, zipped)
	}
	if keep := os.Getenv("CNISCOPE_KEEP"); keep != "" {
		data, err := os.ReadFile(recording)
		harness.Check(t, errors.Join(err, os.WriteFile(keep, data, 0o644)))
	}
}

// cost returns the spans of an OTLP JSON line, their bytes as protobuf, and with gzip.
func cost(t *testing.T, line []byte) (spans, size, zipped int) {
	t.Helper()
	traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
	harness.Check(t, err)
	data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(traces)
	harness.Check(t, err)
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err = z.Write(data)
	harness.Check(t, errors.Join(err, z.Close()))
	return traces.SpanCount(), len(data), out.Len()
}
