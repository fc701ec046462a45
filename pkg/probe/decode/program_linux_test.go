package decode

import (
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

// asksBPF is a record of bpf(2): words of its attributes, a program's name, and the rest.
func asksBPF(command uint64, words []uint32, attributes map[int]string, name, rest string) record {
	data := make([]byte, attrMax+programName)
	for i, w := range words {
		binary.NativeEndian.PutUint32(data[4*i:], w)
	}
	for at, text := range attributes {
		copy(data[at:], text)
	}
	copy(data[attrMax:], name)
	w := &kernel.InsideCallEvent{Class: uint8(kernel.InsideClassCLASS_BPF), Args: [4]uint64{command}, Start: 100}
	w.H.Kind = uint8(kernel.LifeKindKIND_CALL)
	return record{InsideCallEvent: w, process: "7@0", data: append(data, rest...)}
}

func TestWhatIsAskedOfBPF(t *testing.T) {
	for name, test := range map[string]struct {
		record record
		want   event.Request
	}{
		"a program": {
			asksBPF(unix.BPF_PROG_LOAD, []uint32{unix.BPF_PROG_TYPE_SCHED_CLS}, map[int]string{48: "cil_from_contai"}, "", ""),
			event.Request{Name: "BPF_PROG_LOAD", Object: event.ObjectProgram, Verb: event.VerbAdd, Program: "cil_from_contai", Type: "sched_cls"},
		},
		"a map": {
			asksBPF(unix.BPF_MAP_CREATE, []uint32{unix.BPF_MAP_TYPE_LRU_HASH}, map[int]string{28: "cilium_ct4"}, "", ""),
			event.Request{Name: "BPF_MAP_CREATE", Object: event.ObjectMap, Verb: event.VerbAdd, Program: "cilium_ct4", Type: "lru_hash"},
		},
		"a pin": {
			asksBPF(unix.BPF_OBJ_PIN, nil, nil, "", "/sys/fs/bpf/tc\x00"),
			event.Request{Name: "BPF_OBJ_PIN", Object: event.ObjectPin, Verb: event.VerbAdd, Path: "/sys/fs/bpf/tc"},
		},
		"a program on a cgroup": {
			asksBPF(unix.BPF_PROG_ATTACH, []uint32{3, 4, unix.BPF_CGROUP_INET4_CONNECT}, nil, "cil_sock4", "pods\x00cgroup\x00"),
			event.Request{Name: "BPF_PROG_ATTACH", Object: event.ObjectAttachment, Verb: event.VerbAdd, Program: "cil_sock4", Type: "cgroup_inet4_connect", Path: "/cgroup/pods"},
		},
		"the first attach type": {
			asksBPF(unix.BPF_PROG_DETACH, []uint32{3, 4, 0}, nil, "", ""),
			event.Request{Name: "BPF_PROG_DETACH", Object: event.ObjectAttachment, Verb: event.VerbDelete, Type: "cgroup_inet_ingress"},
		},
	} {
		got, is := newDecoder().program(test.record)
		want := test.want
		want.Process, want.Start, want.Protocol = "7@0", 100, "bpf"
		if !is || len(got) != 1 || !reflect.DeepEqual(got[0], &want) {
			t.Errorf("%s: %+v, want %+v", name, got[0], want)
		}
	}
	if _, is := newDecoder().program(asksBPF(unix.BPF_MAP_LOOKUP_ELEM, nil, nil, "", "")); is {
		t.Error("a look into a map is no request")
	}
}

func TestWhatAnAttachmentMentions(t *testing.T) {
	const id, name = "5b2919415cea791dd4ddff000f46e4ada5386e0c3147ae17ac5eebb82e008418", "lxc1a2b3c4d5e6f"
	d := newDecoder()
	d.note(event.Event{Body: &event.Exec{Process: "8@0", Root: true, InPath: true, Call: &event.Call{ContainerID: id}}})
	d.attribute("8@0", &event.Request{Object: event.ObjectLink, Verb: event.VerbAdd, Interface: event.Interface{Name: name, Kind: "veth"}})
	d.Serve("7@0", 1)
	device := asksBPF(unix.BPF_LINK_CREATE, []uint32{3, 38, unix.BPF_TCX_INGRESS}, nil, "cil_from_contai", "")
	copy(device.Comm[:], name)
	device.Port = 38
	for what, r := range map[string]record{
		"interface": device,
		"cgroup":    asksBPF(unix.BPF_PROG_ATTACH, []uint32{3, 4, 6}, nil, "", "cri-"+id+".scope\x00kubepods\x00cgroup\x00"),
		"pin":       asksBPF(unix.BPF_OBJ_PIN, nil, nil, "", "/sys/fs/bpf/cilium/devices/"+name+"/links/cil_from_container\x00"),
	} {
		got, _ := d.program(r)
		d.attribute("7@0", got[0])
		if q := got[0].(*event.Request); !slices.Equal(q.Mentions, []string{id}) {
			t.Errorf("by %s: %+v", what, q)
		}
	}
}
