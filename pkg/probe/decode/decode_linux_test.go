package decode

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/functions"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/probe/symbols"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

func newDecoder() *Decoder {
	return New(Options{Arguments: arguments.Known, Here: func(n uint32) (uint32, bool) { return n, true }, Symbols: new(symbols.Table), Processes: 1024})
}

func encode(flags kernel.LifeFlag, file string, args, env []string) []byte {
	var w kernel.LifeExecEvent
	w.H.Kind, w.H.Flags, w.H.Time = uint8(kernel.LifeKindKIND_EXEC), uint8(flags), 1000
	w.H.Task.Tgid, w.H.Task.Pid, w.H.Task.Start = 7, 8, 900
	text := func(s ...string) string {
		if len(s) == 0 {
			return ""
		}
		return strings.Join(s, "\x00") + "\x00"
	}
	w.FileLen, w.ArgsLen, w.EnvLen = uint16(len(text(file))), uint16(len(text(args...))), uint16(len(text(env...)))
	all := text(file) + text(args...) + text(env...)
	copy(w.Data[:], all)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&w)), unsafe.Sizeof(w))
	return bytes.Clone(raw[:int(unsafe.Offsetof(w.Data))+len(all)])
}

func TestDecodeExec(t *testing.T) {
	call := []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "CNI_PATH=/a:/opt/cni/bin/", "CNI_IFNAME=eth0"}
	for name, test := range map[string]struct {
		raw  []byte
		want func(*event.Exec) bool
	}{
		"a plugin lies in CNI_PATH": {
			encode(kernel.LifeFlagFLAG_TRUSTED, "/opt/cni/bin/bridge", []string{"bridge"}, call),
			func(e *event.Exec) bool { return e.InPath && e.Call.ContainerID == "c1" && e.Name == "bridge" },
		},
		"what is not privileged is not believed": {
			encode(0, "/opt/cni/bin/bridge", []string{"bridge"}, call),
			func(e *event.Exec) bool { return !e.InPath && e.Call == nil },
		},
		"a command is named by what it was called": {
			encode(kernel.LifeFlagFLAG_TRUSTED, "/usr/sbin/xtables-nft-multi", []string{"/usr/sbin/iptables", "-S"}, call),
			func(e *event.Exec) bool {
				return e.Name == "iptables" && len(e.Args) == 1 && !e.InPath && e.Process == "7@900" && e.PID == 8
			},
		},
		"a script is named by its file, without its interpreter": {
			encode(kernel.LifeFlagFLAG_TRUSTED|kernel.LifeFlagFLAG_SCRIPT, "/opt/cni/bin/iptables", []string{"/bin/sh", "-e", "/opt/cni/bin/iptables", "-S"}, call),
			func(e *event.Exec) bool { return e.Name == "iptables" && len(e.Args) == 1 && e.Args[0] == "-S" },
		},
		"a Windows ending is cut": {
			encode(0, "/x/tool.exe", []string{"tool.exe"}, nil),
			func(e *event.Exec) bool { return e.Name == "tool" },
		},
		"an invented command is no call": {
			encode(kernel.LifeFlagFLAG_TRUSTED, "/opt/cni/bin/x", nil, []string{"CNI_COMMAND=\x1b[2J", "CNI_PATH=/opt/cni/bin"}),
			func(e *event.Exec) bool { return e.Call == nil },
		},
		"control characters do not pass": {
			encode(kernel.LifeFlagFLAG_TRUSTED, "/opt/cni/bin/\x1b]0;x\x07", []string{"\x1b[31m"}, []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=\x1b\xff", "CNI_PATH=/opt/cni/bin"}),
			func(e *event.Exec) bool {
				return utf8.ValidString(e.Call.ContainerID) && !strings.ContainsAny(e.File+e.Name+e.Call.ContainerID, "\x1b\x07")
			},
		},
		"what was cut is marked": {
			encode(kernel.LifeFlagFLAG_TRUSTED, "/x", nil, []string{"CNI_COMMAND=ADD", "CNI_ARGS=" + strings.Repeat("x", 600)}),
			func(e *event.Exec) bool { return e.Truncated },
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, _, err := newDecoder().life(test.raw)
			harness.Check(t, err)
			if x := e.Body.(*event.Exec); !test.want(x) {
				t.Errorf("%+v, call %+v", x, x.Call)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{byte(kernel.LifeKindKIND_EXIT)})
	f.Add(encode(kernel.LifeFlagFLAG_TRUSTED, "/opt/cni/bin/bridge", []string{"bridge", "-t"}, []string{"CNI_COMMAND=ADD", "CNI_ARGS=K8S_POD_NAME=x;=;a"}))
	f.Add(encode(kernel.LifeFlagFLAG_TRUSTED|kernel.LifeFlagFLAG_SCRIPT, "/x", nil, []string{"CNI_COMMAND=DEL", "TRACEPARENT=00-"}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		events, err := newDecoder().Events(raw)
		if err == nil {
			harmless(t, events)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	raw := encode(kernel.LifeFlagFLAG_TRUSTED, "/usr/sbin/xtables-nft-multi", []string{"/usr/sbin/iptables", "-t", "nat", "-S"}, []string{
		"CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "CNI_PATH=/opt/cni/bin", "CNI_IFNAME=eth0",
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAME=web-0;K8S_POD_NAMESPACE=shop;K8S_POD_UID=u-1",
	})
	b.ReportAllocs()
	d := newDecoder()
	for b.Loop() {
		if _, _, err := d.life(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func TestASpanIsValidOrNone(t *testing.T) {
	var w kernel.LifeForkEvent
	w.H.Kind, w.H.Time = uint8(kernel.LifeKindKIND_FORK), 1000
	published := kernel.LifeFlagFLAG_CONTEXT
	for name, test := range map[string]struct {
		flags             kernel.LifeFlag
		trace, span       byte
		valid, traceFlags byte
		want              string
		garbled           uint64
	}{
		"of a tenant":     {published, 0xab, 0xcd, 1, 255, "00-000000000000000000000000000000ab-00000000000000cd-01 false", 0},
		"trusted":         {published | kernel.LifeFlagFLAG_TRUSTED, 0xab, 0xcd, 1, 2, "00-000000000000000000000000000000ab-00000000000000cd-00 true", 0},
		"not published":   {kernel.LifeFlagFLAG_TRUSTED, 0xab, 0xcd, 1, 1, "", 0},
		"none active":     {published, 0, 0, 1, 0, "", 0},
		"no trace":        {published, 0, 0xcd, 1, 1, "", 1},
		"no span":         {published, 0xab, 0, 1, 1, "", 1},
		"another version": {published, 0xab, 0xcd, 2, 1, "", 1},
		"unreadable":      {published, 0, 0, 255, 0, "", 1},
	} {
		w.H.Flags = uint8(test.flags)
		w.Context.Trace[15], w.Context.Span[7], w.Context.Valid, w.Context.TraceFlags = test.trace, test.span, test.valid, test.traceFlags
		d, got := newDecoder(), ""
		events := harness.Must(d.Events(unsafe.Slice((*byte)(unsafe.Pointer(&w)), unsafe.Sizeof(w))))(t)
		if thread := events[0].Body.(*event.Fork).Thread; thread != nil {
			got = fmt.Sprint(thread.Parent, " ", thread.Trusted)
		}
		harness.Equal(t, got, test.want, name)
		harness.Equal(t, d.options.Garbled.Load(), test.garbled, name)
	}
}

func TestAForkCarriesTheFunctions(t *testing.T) {
	stat, err := os.ReadFile("/proc/self/stat")
	harness.Check(t, err)
	_, after, _ := strings.Cut(string(stat), ")")
	mounts := harness.Must(procfs.OwnNamespace("mnt"))(t)
	var w kernel.LifeForkEvent
	_, err = fmt.Sscan(strings.Join(strings.Fields(after)[23:25], " "), &w.CodeStart, &w.CodeEnd)
	harness.Check(t, err)
	w.H.Kind, w.H.Time = uint8(kernel.LifeKindKIND_FORK), 1000
	w.H.Task.Tgid, w.H.Task.Start = 7, 900
	w.Parent.Tgid, w.Parent.Start, w.Parent.Pid, w.Mounts = 6, 800, uint32(os.Getpid()), mounts
	for i, f := range []any{os.Getpid, encode, newDecoder} {
		w.Stack[i] = uint64(reflect.ValueOf(f).Pointer()) + 1 // as if it returned there
	}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&w)), unsafe.Sizeof(w))
	bare := int(unsafe.Offsetof(w.Stack))
	for size, want := range map[int]int{bare: 0, bare + 7: 0, bare + 8: 0, bare + 16: 1, bare + 24: 2, len(raw): 2} {
		d := newDecoder()
		d.options.Functions = functions.NewStacks()
		events := harness.Must(d.Events(raw[:size]))(t)
		fork := events[0].Body.(*event.Fork)
		if len(fork.Stack) != want || want > 0 && (!strings.HasSuffix(fork.Stack[0].Function, "decode.encode") || fork.Process != "7@900") {
			t.Errorf("of %d bytes: %+v", size, fork)
		}
	}
	if _, err := newDecoder().Events(raw[:bare-1]); err == nil {
		t.Error("a cut record is no error")
	}
}
