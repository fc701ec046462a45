//go:build linux

package soak

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/soak/agentd/protocol"
)

// A witness notes independently of cniscope which programs ran with CNI_COMMAND, and how.
type witness struct {
	marker  string // of the rig's processes
	objects []interface{ Close() error }
	reader  *ringbuf.Reader
	lost    *ebpf.Map

	mu      sync.Mutex
	running map[uint32]*run
	runs    []*run
	read    int64 // time of the latest read event
}

// A run is one plugin process, in monotonic nanoseconds. End is 0 while it runs.
type run struct {
	Name, Command, Container, Ifname string
	PID                              uint32
	Start, End                       int64
	Exit                             uint32 // as in wait(2)
}

// Records contain time, pid, kind, exit code or length, name, and environment.
const (
	recordSize  = 4096
	headerSize  = 40
	environment = recordSize - headerSize
	kindExec    = 1
	kindExit    = 2
	offsetPID   = 8
	offsetKind  = 12
	offsetValue = 16
	offsetName  = 24
	ringBytes   = 16 << 20
)

func newWitness(rigDir string) (_ *witness, err error) {
	w := &witness{marker: "CNISCOPE_RIG=" + rigDir, running: map[uint32]*run{}}
	defer func() {
		if err != nil {
			_ = w.close()
		}
	}()
	task, mm, err := offsets()
	if err != nil {
		return nil, err
	}
	ring, err := ebpf.NewMap(&ebpf.MapSpec{Name: "soak_ring", Type: ebpf.RingBuf, MaxEntries: ringBytes})
	if err != nil {
		return nil, fmt.Errorf("make the witness' ring: %w", err)
	}
	w.objects = append(w.objects, ring)
	if w.lost, err = ebpf.NewMap(&ebpf.MapSpec{Name: "soak_lost", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}); err != nil {
		return nil, fmt.Errorf("make the witness' counter: %w", err)
	}
	w.objects = append(w.objects, w.lost)
	for name, program := range map[string]asm.Instructions{
		"sched_process_exec": onExec(ring, w.lost, task["mm"], mm), "sched_process_exit": onExit(ring, w.lost, task["exit_code"]),
	} {
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "soak_witness", Type: ebpf.RawTracepoint, Instructions: program, License: "GPL"})
		if err != nil {
			return nil, fmt.Errorf("load the witness of %s: %w", name, err)
		}
		w.objects = append(w.objects, p)
		at, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: p})
		if err != nil {
			return nil, fmt.Errorf("attach the witness to %s: %w", name, err)
		}
		w.objects = append(w.objects, at)
	}
	if w.reader, err = ringbuf.NewReader(ring); err != nil {
		return nil, err
	}
	go w.drain()
	return w, nil
}

func offsets() (task, mm map[string]int32, err error) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, nil, fmt.Errorf("read the kernel's types: %w", err)
	}
	of := func(name string, members ...string) (map[string]int32, error) {
		var s *btf.Struct
		if err := kernel.TypeByName(name, &s); err != nil {
			return nil, err
		}
		found := map[string]int32{}
		search(s, 0, found)
		for _, m := range members {
			if _, is := found[m]; !is {
				return nil, fmt.Errorf("the kernel's %s has no %s", name, m)
			}
		}
		return found, nil
	}
	if task, err = of("task_struct", "mm", "exit_code"); err != nil {
		return nil, nil, err
	}
	mm, err = of("mm_struct", "env_start", "env_end")
	return task, mm, err
}

func search(t btf.Type, base uint32, found map[string]int32) {
	s, is := t.(*btf.Struct)
	if !is {
		return
	}
	for _, m := range s.Members {
		at := base + m.Offset.Bytes()
		if m.Name == "" {
			search(m.Type, at, found)
			continue
		}
		found[m.Name] = int32(at)
	}
}

// readKernel reads 8 bytes at a register's address plus offset to the stack.
func readKernel(from asm.Register, offset int32, to int16, size int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, int32(to)),
		asm.Mov.Imm(asm.R2, size),
		asm.Mov.Reg(asm.R3, from), asm.Add.Imm(asm.R3, offset),
		asm.FnProbeReadKernel.Call(),
	}
}

// reserve puts a record's address into R8, or counts a loss and exits; then it writes the header.
func reserve(ring, lost *ebpf.Map, size, kind int32) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, ring.FD()), asm.Mov.Imm(asm.R2, size), asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.JNE.Imm(asm.R0, 0, "reserved"),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, lost.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "end"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Ja.Label("end"),
		asm.FnKtimeGetNs.Call().WithSymbol("reserved"),
		asm.StoreMem(asm.R8, 0, asm.R0, asm.DWord),
		asm.FnGetCurrentPidTgid.Call(),
		asm.RSh.Imm(asm.R0, 32),
		asm.StoreMem(asm.R8, offsetPID, asm.R0, asm.Word),
		asm.StoreImm(asm.R8, offsetKind, int64(kind), asm.Word),
		asm.StoreImm(asm.R8, offsetValue, 0, asm.Word),
	}
}

func submit() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R8), asm.Mov.Imm(asm.R2, 0),
		asm.FnRingbufSubmit.Call(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("end"),
		asm.Return(),
	}
}

func onExec(ring, lost *ebpf.Map, taskMM int32, mm map[string]int32) (p asm.Instructions) {
	p = append(p, asm.LoadMem(asm.R6, asm.R1, 0, asm.DWord)) // the task
	p = append(p, readKernel(asm.R6, taskMM, -16, 8)...)
	p = append(p, asm.LoadMem(asm.R6, asm.RFP, -16, asm.DWord))
	p = append(p, readKernel(asm.R6, mm["env_start"], -24, 8)...)
	p = append(p, readKernel(asm.R6, mm["env_end"], -32, 8)...)
	p = append(p, reserve(ring, lost, recordSize, kindExec)...)
	p = append(p,
		asm.Mov.Reg(asm.R1, asm.R8), asm.Add.Imm(asm.R1, offsetName), asm.Mov.Imm(asm.R2, headerSize-offsetName),
		asm.FnGetCurrentComm.Call(),
		asm.LoadMem(asm.R3, asm.RFP, -24, asm.DWord),
		asm.LoadMem(asm.R9, asm.RFP, -32, asm.DWord), asm.Sub.Reg(asm.R9, asm.R3),
		asm.JLE.Imm(asm.R9, environment, "fits"),
		asm.Mov.Imm(asm.R9, environment),
		asm.StoreMem(asm.R8, offsetValue, asm.R9, asm.Word).WithSymbol("fits"),
		asm.Mov.Reg(asm.R1, asm.R8), asm.Add.Imm(asm.R1, headerSize),
		asm.Mov.Reg(asm.R2, asm.R9),
		asm.FnProbeReadUser.Call(),
	)
	return append(p, submit()...)
}

func onExit(ring, lost *ebpf.Map, exitCode int32) (p asm.Instructions) {
	p = append(p,
		asm.LoadMem(asm.R6, asm.R1, 0, asm.DWord),
		asm.FnGetCurrentPidTgid.Call(),
		asm.Mov.Reg(asm.R7, asm.R0), asm.RSh.Imm(asm.R7, 32),
		asm.LSh.Imm(asm.R0, 32), asm.RSh.Imm(asm.R0, 32),
		asm.JNE.Reg(asm.R0, asm.R7, "end"),
		asm.StoreImm(asm.RFP, -16, 0, asm.Word),
	)
	p = append(p, readKernel(asm.R6, exitCode, -16, 4)...)
	p = append(p, reserve(ring, lost, headerSize, kindExit)...)
	p = append(p, asm.LoadMem(asm.R1, asm.RFP, -16, asm.Word), asm.StoreMem(asm.R8, offsetValue, asm.R1, asm.Word))
	return append(p, submit()...)
}

func (w *witness) drain() {
	var r ringbuf.Record
	for {
		if err := w.reader.ReadInto(&r); err != nil {
			return // closed
		}
		w.take(r.RawSample)
	}
}

func (w *witness) take(raw []byte) {
	if len(raw) < headerSize {
		return
	}
	at := int64(binary.NativeEndian.Uint64(raw))
	pid, value := binary.NativeEndian.Uint32(raw[offsetPID:]), binary.NativeEndian.Uint32(raw[offsetValue:])
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = max(w.read, at)
	if binary.NativeEndian.Uint32(raw[offsetKind:]) == kindExit {
		if one := w.running[pid]; one != nil {
			one.End, one.Exit = at, value
			delete(w.running, pid)
		}
		return
	}
	name, _, _ := bytes.Cut(raw[offsetName:headerSize], []byte{0})
	one := &run{Name: string(name), PID: pid, Start: at}
	ours := false
	for entry := range strings.SplitSeq(string(raw[headerSize:min(len(raw), headerSize+int(value))]), "\x00") {
		key, text, _ := strings.Cut(entry, "=")
		switch key {
		case "CNI_COMMAND":
			one.Command = text
		case "CNI_CONTAINERID":
			one.Container = text
		case "CNI_IFNAME":
			one.Ifname = text
		}
		ours = ours || entry == w.marker
	}
	if !ours || !plugins[one.Name] || (one.Command != "ADD" && one.Command != "DEL") {
		return
	}
	w.running[pid] = one
	w.runs = append(w.runs, one)
}

// plugins are the chain's; their commands inherit the environment.
var plugins = map[string]bool{"loopback": true, "bridge": true, "portmap": true, "firewall": true, protocol.Plugin: true}

// seen returns the runs that ended after a time, once everything until now was read.
func (w *witness) seen(since int64) (runs []run, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.runs {
		if one.End == 0 || one.End >= since {
			runs = append(runs, *one)
		}
	}
	var n uint64
	if err := w.lost.Lookup(uint32(0), &n); err != nil {
		return nil, fmt.Errorf("ask the witness what it lost: %w", err)
	}
	if n > 0 {
		return nil, fmt.Errorf("the witness lost %d events: it knows too little to judge", n)
	}
	return runs, nil
}

// forget drops runs that ended before a time.
func (w *witness) forget(before int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.runs[:0]
	for _, one := range w.runs {
		if one.End == 0 || one.End >= before {
			kept = append(kept, one)
		}
	}
	clear(w.runs[len(kept):])
	w.runs = kept
}

func (w *witness) close() error {
	var errs []error
	if w.reader != nil {
		errs = append(errs, w.reader.Close())
	}
	for i := len(w.objects) - 1; i >= 0; i-- {
		errs = append(errs, w.objects[i].Close())
	}
	if err := errors.Join(errs...); err != nil && !errors.Is(err, unix.EBADF) {
		return err
	}
	return nil
}
