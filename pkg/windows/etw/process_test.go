package etw_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/test/etwtest"
	"github.com/cniscope/cniscope/test/harness"
)

const image = `\Device\HarddiskVolume3\opt\cni\bin\bridge.exe`

// told has the fields that a provider reports in a version.
func told(provider etw.GUID, what etw.What, version uint8) etw.Process {
	p := etw.Process{
		What: what, Provider: provider, Version: version, Time: 12345, PID: 4711, Image: "bridge.exe",
	}
	if provider == etw.KernelProcess {
		p.Created = 132404548233564008
		if what == etw.End {
			p.Code = 0xc0000005
			return p
		}
		p.Parent, p.Image = 3508, image
		return p
	}
	p.Parent = 3508
	if version >= 1 {
		p.Code = 259
	}
	if version >= 2 {
		p.CommandLine = `powershell.exe -Command "Get-NetAdapter -InterfaceAlias 'vEthernet (db-6cqff-568022)' # žluťoučký"`
	}
	return p
}

// All supported ones.
var versions = []struct {
	provider etw.GUID
	what     etw.What
	last     uint8
}{
	{etw.KernelProcess, etw.Start, 5},
	{etw.KernelProcess, etw.End, 2},
	{etw.KernelProcess, etw.Present, 1},
	{etw.SystemProcess, etw.Start, 5},
	{etw.SystemProcess, etw.End, 5},
	{etw.SystemProcess, etw.Present, 5},
	{etw.SystemProcess, etw.Remains, 5},
	{etw.SystemProcess, etw.Defunct, 5},
}

func TestEveryKnownVersion(t *testing.T) {
	for _, v := range versions {
		for version := range v.last + 1 {
			want := told(v.provider, v.what, version)
			r := etwtest.Record(want)
			var d etw.Decoder
			if got, ok := d.Decode(&r); !ok || got != want {
				t.Errorf("%s of %s v%d:\n%+v, want\n%+v", v.what, v.provider, version, got, want)
			}
		}
	}
}

func TestAnUnknownVersionIsCountedAndNotGuessed(t *testing.T) {
	for _, v := range versions {
		r := etwtest.Record(told(v.provider, v.what, v.last))
		r.Version = v.last + 1
		name := map[etw.GUID]string{etw.KernelProcess: "Kernel-Process", etw.SystemProcess: "system logger"}[v.provider]
		var d etw.Decoder
		got, ok := d.Decode(&r)
		if key := fmt.Sprintf("%s %s v%d", name, v.what, r.Version); ok || d.Unknown[key] != 1 {
			t.Errorf("%s: read %+v, counted %v", key, got, d.Unknown)
		}
	}
}

// Truncation invents no values.
func TestWhatIsCutOffIsCounted(t *testing.T) {
	for _, v := range versions {
		want := told(v.provider, v.what, v.last)
		whole := etwtest.Record(want)
		for n := range whole.Payload {
			r := whole
			r.Payload = whole.Payload[:n]
			var d etw.Decoder
			got, ok := d.Decode(&r)
			if ok && got != want || !ok && len(d.Malformed) != 1 {
				t.Fatalf("%s of %s, %d bytes of %d: %v %+v, counted %v", v.what, v.provider, n, len(whole.Payload), ok, got, d.Malformed)
			}
		}
	}
}

func TestPayloadsOfA32BitMachine(t *testing.T) {
	want := told(etw.SystemProcess, etw.Start, 3)
	r := etwtest.Record(want)
	r.Pointer, r.Payload = 4, etwtest.Payload(4, etwtest.System(want))
	var d etw.Decoder
	if got, ok := d.Decode(&r); !ok || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestNoUserAndNoASCII(t *testing.T) {
	want := told(etw.SystemProcess, etw.Start, 4)
	want.Code, want.Image = etwtest.NoUser, "r\xe9seau.exe"
	r := etwtest.Record(want)
	want.Image = "r\ufffdseau.exe"
	var d etw.Decoder
	if got, ok := d.Decode(&r); !ok || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestOfOthersNothingIsToldOrCounted(t *testing.T) {
	for _, r := range []etw.Record{
		{Provider: etw.KernelProcess, ID: 3}, {Provider: etw.SystemProcess, Opcode: 10}, {Provider: etw.GUID{1}, ID: 1, Opcode: 1}, {},
	} {
		var d etw.Decoder
		if p, ok := d.Decode(&r); ok || len(d.Unknown)+len(d.Malformed) > 0 {
			t.Errorf("%+v: %+v %v %v", r, p, d.Unknown, d.Malformed)
		}
	}
}

func TestTheNamesOfProviders(t *testing.T) {
	for want, g := range map[string]etw.GUID{
		"{22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716}": etw.KernelProcess, "{3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c}": etw.SystemProcess,
		"{0c885e0d-6eb6-476c-a048-2457eed3a5c1}": etw.Recorded()[1].GUID,
	} {
		le := binary.LittleEndian
		name := fmt.Sprintf("{%08x-%04x-%04x-%x-%x}", le.Uint32(g[0:]), le.Uint16(g[4:]), le.Uint16(g[6:]), g[8:10], g[10:])
		harness.Equal(t, name, want, g)
	}
	if etw.KernelProcess != (etw.GUID{0xd6, 0x2c, 0xfb, 0x22, 0x7b, 0x0e, 0x2b, 0x42, 0xa0, 0xc7, 0x2f, 0xad, 0x1f, 0xd0, 0xe7, 0x16}) {
		t.Error("it is in another order in memory")
	}
}

func FuzzDecode(f *testing.F) {
	for _, v := range versions {
		r := etwtest.Record(told(v.provider, v.what, v.last))
		f.Add(v.provider == etw.KernelProcess, uint8(v.what), v.last, true, r.Payload)
	}
	f.Fuzz(func(t *testing.T, kernel bool, what, version uint8, wide bool, payload []byte) {
		r := etw.Record{Provider: etw.SystemProcess, Opcode: what, ID: uint16(what), Version: version, Pointer: 4, Payload: payload}
		if kernel {
			r.Provider = etw.KernelProcess
		}
		if wide {
			r.Pointer = 8
		}
		var d etw.Decoder
		p, ok := d.Decode(&r)
		if len(p.Image)+len(p.CommandLine) > 3*len(payload) {
			t.Errorf("%d bytes make texts of %d and %d", len(payload), len(p.Image), len(p.CommandLine))
		}
		if ok && p.What == 0 {
			t.Error("it is of nothing")
		}
	})
}
