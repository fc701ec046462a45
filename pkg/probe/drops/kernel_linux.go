// Package drops observes who drops a waiting pod's packets.
package drops

import (
	"bytes"
	_ "embed"
	"errors"
	"structs"

	"github.com/cilium/ebpf"
)

//go:generate -command compile clang -target bpfel -mcpu=v1 -g -fdebug-compilation-dir=. -O2 -Wall -Werror
//go:generate compile -I../kernel/bpf -I/usr/include -c ../kernel/bpf/drops.c -o drops_bpfel.o

//go:embed drops_bpfel.o
var object []byte

type (
	pod struct {
		_            structs.HostLayout
		Waits        uint64
		Flows, Kinds uint32
	}
	flow struct {
		_              structs.HostLayout
		Address        [4]uint32
		Port, Protocol uint16
	}
	drop struct {
		_            structs.HostLayout
		Pod, Place   uint64
		Reason       uint32
		Back, Inside uint16
		Device       [16]byte
	}
	seen struct {
		_     structs.HostLayout
		Count uint32
		Other flow
	}
)

type objects struct {
	OnAgain *ebpf.Program `ebpf:"on_again"`
	OnDrop  *ebpf.Program `ebpf:"on_drop"`
	Pods    *ebpf.Map     `ebpf:"pods"`
	Flows   *ebpf.Map     `ebpf:"flows"`
	Drops   *ebpf.Map     `ebpf:"drops"`
}

func (o *objects) load(node uint32, reasons bool) error {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return err
	}
	if err := errors.Join(spec.Variables["node_net"].Set(node), spec.Variables["has_reason"].Set(reasons)); err != nil {
		return err
	}
	return spec.LoadAndAssign(o, nil)
}

func (o *objects) close() error {
	return errors.Join(o.OnAgain.Close(), o.OnDrop.Close(), o.Pods.Close(), o.Flows.Close(), o.Drops.Close())
}
