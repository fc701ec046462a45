package etw

import (
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/test/harness"
)

// It calls the callback like ProcessTrace.
func TestARecordAsWindowsHandsItOver(t *testing.T) {
	var got []Record
	l := &logger{name: "test", take: func(r *Record) {
		kept := *r
		kept.Payload = append([]byte(nil), r.Payload...)
		got = append(got, kept)
	}}
	payload := []byte("payload")
	r := &eventRecord{
		flags: header32Bit, time: 123_456_789, provider: KernelProcess, id: 1, version: 5, opcode: 2,
		payloadLength: 7, payload: &payload[0], context: l,
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(r)
	pin.Pin(l)
	pin.Pin(&payload[0])
	_, _, _ = syscall.SyscallN(callback(), uintptr(unsafe.Pointer(r)))
	r.flags, r.payload, r.payloadLength = 0, nil, 0
	_, _, _ = syscall.SyscallN(callback(), uintptr(unsafe.Pointer(r)))
	want := []Record{
		{Provider: KernelProcess, ID: 1, Version: 5, Opcode: 2, Time: clock.FromCounter(123_456_789), Pointer: 4, Payload: payload},
		{Provider: KernelProcess, ID: 1, Version: 5, Opcode: 2, Time: clock.FromCounter(123_456_789), Pointer: 8},
	}
	harness.DeepEqual(t, got, want)
}
