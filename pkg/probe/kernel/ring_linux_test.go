package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cniscope/cniscope/test/harness"
)

// sender returns a BPF program that sends the first length bytes of its input.
func sender(t *testing.T, ring *ebpf.Map, length int32, flags int32) func(first byte) {
	t.Helper()
	p := harness.Must(ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, 0), // the packet's bytes go onto the stack
			asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -512), asm.Mov.Imm(asm.R4, 512),
			asm.FnSkbLoadBytes.Call(),
			asm.JNE.Imm(asm.R0, 0, "end"),
			asm.LoadMapPtr(asm.R1, ring.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -512),
			asm.Mov.Imm(asm.R3, length), asm.Mov.Imm(asm.R4, flags),
			asm.FnRingbufOutput.Call(),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("end"),
			asm.Return(),
		},
	}))(t)
	t.Cleanup(func() { _ = p.Close() })
	return func(first byte) {
		t.Helper()
		if _, err := p.Run(&ebpf.RunOptions{Data: bytes.Repeat([]byte{first}, 512)}); err != nil {
			t.Fatal(err)
		}
	}
}

func smallRing(t *testing.T) (*Ring, *ebpf.Map) {
	t.Helper()
	harness.Root(t)
	m := harness.Must(ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: uint32(os.Getpagesize())}))(t)
	t.Cleanup(func() { _ = m.Close() })
	r := harness.Must(openRing(m))(t)
	t.Cleanup(func() { _ = r.Close() })
	return r, m
}

func TestARingIsReadRoundAndRound(t *testing.T) {
	const quietly = 1 // BPF_RB_NO_WAKEUP
	for _, length := range []int32{1, 7, 8, 100, 301, 512} {
		r, m := smallRing(t)
		send := sender(t, m, length, quietly)
		if _, more := r.Next(); more || r.Waiting() != 0 {
			t.Fatal("there is a record in an empty ring")
		}
		for i := range 200 {
			send(byte(i))
			send(byte(i + 1))
			for n := range 2 {
				got, more := r.Next()
				if want := bytes.Repeat([]byte{byte(i + n)}, int(length)); !more || !bytes.Equal(got, want) {
					t.Fatalf("record %d of %d bytes: %v, % x", 2*i+n, length, more, got)
				}
			}
		}
		if _, more := r.Next(); more || r.Waiting() != 0 {
			t.Error("there is more than was sent")
		}
	}
}

func TestWhatEndsAWait(t *testing.T) {
	const quietly, loud = 1, 2 // BPF_RB_NO_WAKEUP, BPF_RB_FORCE_WAKEUP
	never := time.Time{}
	wait := func(t *testing.T, r *Ring, until time.Time, meanwhile func()) error {
		t.Helper()
		woken := make(chan error, 1)
		go func() { woken <- r.Wait(until) }()
		meanwhile()
		select {
		case err := <-woken:
			return err
		case <-time.After(time.Minute):
			t.Fatal("nobody was woken")
			return nil
		}
	}
	t.Run("a record", func(t *testing.T) {
		r, m := smallRing(t)
		send := sender(t, m, 8, loud)
		for i := range 100 { // also directly before a Wait
			harness.Check(t, wait(t, r, never, func() { send(byte(i)) }))
			if got, more := r.Next(); !more || got[0] != byte(i) {
				t.Fatalf("%v, % x", more, got)
			}
		}
	})
	t.Run("the time", func(t *testing.T) {
		r, _ := smallRing(t)
		if err := wait(t, r, time.Now().Add(time.Millisecond), func() {}); err != nil || r.Waiting() != 0 {
			t.Error(err)
		}
	})
	t.Run("a record without a word, and the time", func(t *testing.T) {
		r, m := smallRing(t)
		harness.Check(t, wait(t, r, time.Now().Add(10*time.Millisecond), func() { sender(t, m, 8, quietly)('x') }))
	})
	t.Run("what is there", func(t *testing.T) {
		r, m := smallRing(t)
		sender(t, m, 8, quietly)('x')
		if err := wait(t, r, never, func() {}); err != nil || r.Waiting() == 0 {
			t.Error(err)
		}
	})
	t.Run("somebody else", func(t *testing.T) {
		r, _ := smallRing(t)
		for range 100 { // also directly before a Wait
			harness.Check(t, wait(t, r, never, r.Wake))
		}
		harness.Check(t, wait(t, r, time.Now().Add(time.Millisecond), func() {}))
	})
	t.Run("that it is closed", func(t *testing.T) {
		r, _ := smallRing(t)
		if err := wait(t, r, never, func() { _ = r.Close() }); !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
		if _, more := r.Next(); more || r.Waiting() != 0 || !errors.Is(r.Wait(never), os.ErrClosed) {
			t.Error("it can be read")
		}
	})
}

func TestARecordThatWasGivenUpIsPassedOver(t *testing.T) {
	put := func(length uint32, text string) []byte {
		b := binary.NativeEndian.AppendUint32(nil, length)
		b = append(append(b, 0, 0, 0, 0), text...)
		return append(b, make([]byte, -len(text)&7)...)
	}
	const dropped = 1 << 30
	page := os.Getpagesize()
	r := &Ring{consumer: make([]byte, page), producer: make([]byte, 2*page)}
	r.data = r.producer[page:]
	written := append(append(put(3|dropped, "old"), put(3, "new")...), put(9|dropped, "and older")...)
	copy(r.data, written)
	binary.NativeEndian.PutUint64(r.producer, uint64(len(written)))
	if got, more := r.Next(); !more || string(got) != "new" {
		t.Errorf("%v, %q", more, got)
	}
	if _, more := r.Next(); more || r.Waiting() != 0 {
		t.Error("there is more")
	}
	r.consumer, r.producer = nil, nil // not mapped here
}
