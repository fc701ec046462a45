package pipeline

import (
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

// tape draws numbers from the fuzzer's bytes, and then from a generator with that seed.
type tape struct {
	data []byte
	rest *rand.Rand
}

func newTape(data []byte) *tape {
	sum := fnv.New64a()
	_, _ = sum.Write(data)
	return &tape{data, rand.New(rand.NewPCG(sum.Sum64(), 1))}
}

func (t *tape) pick(n int) int {
	if len(t.data) == 0 {
		return t.rest.IntN(n)
	}
	drawn := int(t.data[0]) % n
	t.data = t.data[1:]
	return drawn
}

func (t *tape) one(of ...string) string { return of[t.pick(len(of))] }

// frequent kinds make most of a stream.
var frequent = []string{
	"exec", "exec", "exec", "fork", "exit", "exit", "tick", "agent", "connect", "accept",
	"exchange", "wait",
}

// stream draws events of every kind, of existing and unknown processes, in any order of time.
func stream(data []byte) (events []event.Event) {
	t, now := newTape(data), int64(1<<20)
	for range 100 + t.pick(256) {
		now += int64(t.pick(4)) - 1
		if t.pick(64) == 0 {
			now += int64(t.pick(256))
		}
		kinds := event.Kinds()
		if t.pick(3) > 0 {
			kinds = frequent
		}
		body := event.New(kinds[t.pick(len(kinds))])
		t.fill(reflect.ValueOf(body).Elem(), "", now)
		events = append(events, event.Event{Time: now, Body: body})
	}
	return events
}

// fill draws from so few values that events refer to each other.
func (t *tape) fill(v reflect.Value, name string, now int64) {
	switch v.Kind() {
	case reflect.Pointer:
		if t.pick(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			t.fill(v.Elem(), name, now)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			t.fill(v.Field(i), v.Type().Field(i).Name, now)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), t.pick(3), 3))
		for i := range v.Len() {
			t.fill(v.Index(i), name, now)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		t.fill(key, name, now)
		t.fill(value, name, now)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(t.text(v.Type(), name))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(t.pick(6)))
		if slices.Contains([]string{"Start", "Started", "Last", "End", "Wall", "CPU"}, name) && t.pick(4) > 0 {
			v.SetInt(now - int64(t.pick(40)))
		}
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(t.pick(6)))
	case reflect.Bool:
		v.SetBool(t.pick(2) == 0)
	default:
		panic("stream: draw a " + v.Kind().String() + " for " + name)
	}
}

func (t *tape) text(of reflect.Type, name string) string {
	switch of {
	case reflect.TypeFor[event.Process]():
		if name == "Parent" && t.pick(2) == 0 {
			return t.one("containerd", "containerd", "containerd", "x", "y")
		}
		return t.one("a", "b", "c", "d", "e", "f", "g", "h", "x", "y", "")
	case reflect.TypeFor[event.WaitKind]():
		return t.one("lock", "mutex", "sleep", "poll", "system call", "x")
	case reflect.TypeFor[event.AgentState]():
		return t.one("stopped", "frozen", "uninterruptible", "running", "waiting", "idle", "")
	case reflect.TypeFor[event.Verb]():
		return t.one("add", "change", "delete", "query", "")
	case reflect.TypeFor[event.Object]():
		return t.one("link", "address", "rule", "netns", "")
	case reflect.TypeFor[event.Phase]():
		return t.one("running", "stopped", "removed", "present")
	case reflect.TypeFor[event.Caller]():
		return t.one("runtime", "runtime", "agent", "host", "")
	case reflect.TypeFor[event.AddressState]():
		return t.one("tentative", "ready", "duplicate")
	}
	switch name {
	case "ContainerID", "ID", "SandboxID", "Mentions":
		return t.one("c1", "c1", "c1", "c2", "")
	case "Command":
		return t.one("ADD", "ADD", "ADD", "ADD", "ADD", "DEL", "DEL", "CHECK", "STATUS")
	case "File":
		return t.one("/opt/cni/bin/bridge", "/opt/cni/bin/portmap", "/opt/cni/bin/tuning", "/usr/sbin/iptables")
	case "IfName":
		return t.one("eth0", "eth0", "eth0", "lo", "net1")
	case "NetNS":
		return t.one("/run/netns/x", "/run/netns/x", "/run/netns/x", "")
	case "Key", "Label":
		return t.one("n1", "n2", "n3", "")
	case "Socket":
		return t.one("s1", "s2", "s3", "")
	case "Stdin":
		return t.one("p1", "p2", event.NoStdin, "")
	case "Network":
		return t.one("unix", "tcp")
	case "Protocol":
		return t.one("rtnetlink", "nf_tables", "iptables", "ioctl", "bpf")
	case "Error":
		return t.one("", "", "", "ECONNREFUSED", "EEXIST", "EAGAIN", "unfollowed", "closed")
	case "Path", "Address":
		return t.one("/run/lock0", "/run/lock1", "10.0.0.1:443", "")
	case "What":
		return t.one("bytes", "requests", "x")
	case "Feature":
		return t.one("nri", "x")
	case "Parent":
		return t.one("", "", "", "", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
			"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
	}
	return t.one("", "x", "y")
}

func TestStreamsHoldEveryKindAndField(t *testing.T) {
	drawn := map[string]bool{}
	var mark func(string, reflect.Value)
	mark = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				mark(path, v.Elem())
			}
			return
		case reflect.Struct:
			for i := range v.NumField() {
				mark(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		}
		drawn[path] = drawn[path] || !v.IsZero()
	}
	kinds := map[string]bool{}
	for seed := range byte(250) {
		for _, e := range stream([]byte{seed}) {
			kinds[event.Kind(e.Body)] = true
			mark(event.Kind(e.Body), reflect.ValueOf(e.Body))
		}
	}
	for _, kind := range event.Kinds() {
		if !kinds[kind] {
			t.Errorf("no stream holds an event of kind %s", kind)
		}
	}
	for field, set := range drawn {
		if !set && field != "tick" {
			t.Errorf("%s is never set", field)
		}
	}
	for _, field := range []string{"agent.Hidden", "enter.NetNS.Key", "exec.Mentions"} {
		if !drawn[field] {
			t.Errorf("%s is not drawn", field)
		}
	}
}
