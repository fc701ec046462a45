//go:build linux

package e2e

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/cniscope/cniscope/test/harness"
)

// clockReader reads the clock at tracepoints. Its programs, unlike bpftrace's shared ones, run last there.
type clockReader struct{ rings map[string]*ebpf.Map }

const clockRing = 16 << 20

func readClocks(t *testing.T, tracepoints ...string) *clockReader {
	t.Helper()
	c := &clockReader{rings: map[string]*ebpf.Map{}}
	for _, name := range tracepoints {
		ring := harness.Must(ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: clockRing}))(t)
		t.Cleanup(func() { ring.Close() })
		program := harness.Must(ebpf.NewProgram(&ebpf.ProgramSpec{
			Type: ebpf.RawTracepoint, License: "GPL",
			Instructions: asm.Instructions{
				asm.FnKtimeGetBootNs.Call(),
				asm.StoreMem(asm.RFP, -16, asm.R0, asm.DWord),
				asm.FnGetCurrentPidTgid.Call(),
				asm.StoreMem(asm.RFP, -8, asm.R0, asm.DWord),
				asm.LoadMapPtr(asm.R1, ring.FD()),
				asm.Mov.Reg(asm.R2, asm.RFP),
				asm.Add.Imm(asm.R2, -16),
				asm.Mov.Imm(asm.R3, 16),
				asm.Mov.Imm(asm.R4, 1), // BPF_RB_NO_WAKEUP
				asm.FnRingbufOutput.Call(),
				asm.Mov.Imm(asm.R0, 0),
				asm.Return(),
			},
		}))(t)
		defer program.Close() // the link keeps it
		l := harness.Must(link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: program}))(t)
		t.Cleanup(func() { l.Close() })
		c.rings[name] = ring
	}
	return c
}

// stop returns the readings in CLOCK_BOOTTIME, by tracepoint and by thread in the initial PID namespace, in order.
func (c *clockReader) stop(t *testing.T) map[string]map[uint32][]int64 {
	t.Helper()
	all := map[string]map[uint32][]int64{}
	for name, ring := range c.rings {
		of := map[uint32][]int64{}
		reader, err := ringbuf.NewReader(ring)
		harness.Check(t, err)
		harness.Check(t, reader.Flush())
		read := 0
		var record ringbuf.Record
		for err = reader.ReadInto(&record); err == nil; err = reader.ReadInto(&record) {
			thread := uint32(binary.NativeEndian.Uint64(record.RawSample[8:]))
			of[thread] = append(of[thread], int64(binary.NativeEndian.Uint64(record.RawSample)))
			read++
		}
		if !errors.Is(err, ringbuf.ErrFlushed) {
			t.Fatal(err)
		}
		harness.Check(t, reader.Close())
		if read >= clockRing/24 {
			t.Fatalf("too many readings at %s", name)
		}
		for _, times := range of {
			slices.Sort(times)
		}
		all[name] = of
	}
	return all
}
