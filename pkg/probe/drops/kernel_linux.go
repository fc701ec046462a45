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
		Neighbor     [4]uint32
	}
	seen struct {
		_                        structs.HostLayout
		Count, Programs, Program uint32
		Other                    flow
		Code                     uint64
		Began, Last, Watched     uint64
		Stack                    [12]uint64
		Next                     [4]uint32
		Guarded                  uint64
	}
	rule struct {
		_            structs.HostLayout
		Function, Of uint64
		Idle         uint64
		Legacy       [32]byte
		Chain, Table [64]byte
	}
	ruled struct {
		_        structs.HostLayout
		Pod, Six uint64
	}
	rules struct {
		_       structs.HostLayout
		Changed uint64
		Counts  [hooks + 1]uint32
		All     [hooks][8]rule
	}
)

const (
	hooks     = 5
	neighbors = 256 // NEIGHBORS
)

type objects struct {
	OnAgain *ebpf.Program `ebpf:"on_again"`
	OnDrop  *ebpf.Program `ebpf:"on_drop"`
	Pods    *ebpf.Map     `ebpf:"pods"`
	Flows   *ebpf.Map     `ebpf:"flows"`
	Drops   *ebpf.Map     `ebpf:"drops"`
	Rules   *ebpf.Map     `ebpf:"rules"`

	Since      *ebpf.Variable `ebpf:"since"`
	ChainTable *ebpf.Variable `ebpf:"chain_table"`
	ChainName  *ebpf.Variable `ebpf:"chain_name"`
	ChainRules *ebpf.Variable `ebpf:"chain_rules"`
	BaseChain  *ebpf.Variable `ebpf:"base_chain"`
	BasePolicy *ebpf.Variable `ebpf:"base_policy"`
	TableName  *ebpf.Variable `ebpf:"table_name"`
	LegacyName *ebpf.Variable `ebpf:"xt_name"`
}

func (o *objects) load(node uint32, reasons map[uint32]string) error {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return err
	}
	v := spec.Variables
	if err := errors.Join(v["node_net"].Set(node), v["has_reason"].Set(len(reasons) > 0)); err != nil {
		return err
	}
	names := map[string]string{
		"NETFILTER_DROP": "by_netfilter", "XDP": "by_xdp", "TC_INGRESS": "by_ingress", "TC_EGRESS": "by_egress",
		"NOT_SPECIFIED": "unspecified",
	}
	for number, reason := range reasons {
		if name := names[reason]; name != "" {
			if err := v[name].Set(number); err != nil {
				return err
			}
		}
	}
	return spec.LoadAndAssign(o, nil)
}

func (o *objects) close() error {
	return errors.Join(o.OnAgain.Close(), o.OnDrop.Close(),
		o.Pods.Close(), o.Flows.Close(), o.Drops.Close(), o.Rules.Close())
}
