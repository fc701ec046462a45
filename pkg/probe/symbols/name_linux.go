package symbols

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// kernel formats an address with %ps (printk-formats.rst) in a BPF program.
type kernel struct {
	program *ebpf.Program
	format  *ebpf.Map
	asked   question
}

// question is an address, and also the answer: its name.
type question struct {
	Address uint64
	Name    [nameMax]byte
}

// nameMax includes the NUL. Few names are longer.
const nameMax = 120

func openKernel() (k *kernel, err error) {
	k = &kernel{}
	defer func() {
		if err != nil {
			_ = k.Close()
		}
	}()
	const format = "%ps\x00"
	if k.format, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: "name_format", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(len(format)), MaxEntries: 1,
		Flags: unix.BPF_F_RDONLY_PROG, Contents: []ebpf.MapKV{{Key: uint32(0), Value: []byte(format)}},
	}); err != nil {
		return k, fmt.Errorf("making a map for the format of names: %w", err)
	}
	if err = k.format.Freeze(); err != nil { // the verifier uses its content
		return k, fmt.Errorf("freezing it: %w", err)
	}
	if k.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "name_function", Type: ebpf.Syscall, Flags: unix.BPF_F_SLEEPABLE, License: "GPL", Instructions: instructions(k.format.FD()),
	}); err != nil {
		return k, fmt.Errorf("loading the program that names functions: %w", err)
	}
	return k, k.ask(0)
}

// instructions implement snprintf(question.Name, nameMax, "%ps", question.Address).
func instructions(format int) asm.Instructions {
	const (
		address = -8
		name    = address - nameMax
		step    = 8
	)
	all := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, 0, asm.DWord),
		asm.StoreMem(asm.RFP, address, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R1, 0),
	}
	for at := int16(0); at < nameMax; at += step { // the verifier forbids reading uninitialized stack
		all = append(all, asm.StoreMem(asm.RFP, name+at, asm.R1, asm.DWord))
	}
	all = append(all,
		asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, name),
		asm.Mov.Imm(asm.R2, nameMax),
		asm.LoadMapValue(asm.R3, format, 0),
		asm.Mov.Reg(asm.R4, asm.RFP), asm.Add.Imm(asm.R4, address),
		asm.Mov.Imm(asm.R5, step),
		asm.FnSnprintf.Call(),
	)
	for at := int16(0); at < nameMax; at += step {
		all = append(all, asm.LoadMem(asm.R1, asm.RFP, name+at, asm.DWord), asm.StoreMem(asm.R6, step+at, asm.R1, asm.DWord))
	}
	return append(all, asm.Mov.Imm(asm.R0, 0), asm.Return())
}

func (k *kernel) ask(address uint64) error {
	k.asked = question{Address: address}
	if _, err := k.program.Run(&ebpf.RunOptions{Context: &k.asked, ContextOut: &k.asked}); err != nil {
		return fmt.Errorf("running the program that names functions: %w", err)
	}
	return nil
}

func (k *kernel) name(address uint64) string {
	if k.ask(address) != nil || bytes.HasPrefix(k.asked.Name[:], []byte("0x")) { // no function
		return ""
	}
	name := k.asked.Name[:]
	if end := bytes.IndexAny(name, ". \x00"); end >= 0 { // compiler suffixes, module
		name = name[:end]
	}
	return string(name)
}

func (k *kernel) Close() error {
	return errors.Join(k.program.Close(), k.format.Close())
}
