package drops

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/probe/symbols"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	every   = 500 * time.Millisecond
	lingers = 4 * time.Second
	most    = 8
	asks    = 2 * time.Second // one each second
	node    = uint64(0)       // no pod
)

// Watch is safe for concurrent use.
type Watch struct {
	reasons map[uint32]string
	errors  bool // routes' errors have reasons (5.19)
	frees   bool // nftables does
	wake    chan struct{}

	mu      sync.Mutex
	objects objects
	again   link.Link
	drop    link.Link
	names   *symbols.Table
	until   map[event.Namespace]followed
}

type followed struct {
	until int64 // monotonic ns
	flows []flow
	asked bool // its counts may be too small
}

// Open takes the inode number of the node's network namespace.
func Open(node uint32) (_ *Watch, err error) {
	w := &Watch{
		reasons: map[uint32]string{}, wake: make(chan struct{}, 1), until: map[event.Namespace]followed{},
		names: new(symbols.Table), frees: nftFrees(),
	}
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("needs BTF: %w", err)
	}
	arguments, err := argumentsOf(types, "btf_trace_kfree_skb")
	if err != nil {
		return nil, err
	}
	var reasons *btf.Enum
	if types.TypeByName("skb_drop_reason", &reasons) == nil {
		for _, v := range reasons.Values {
			w.reasons[uint32(v.Value)] = strings.TrimPrefix(v.Name, "SKB_DROP_REASON_")
			w.errors = w.errors || v.Name == "SKB_DROP_REASON_IP_INNOROUTES"
		}
	}
	if arguments < 3 {
		clear(w.reasons)
	}
	if w.names, err = symbols.Open(); err != nil {
		return nil, fmt.Errorf("the names of kernel functions need Linux 5.14: %w", err)
	}
	_ = rlimit.RemoveMemlock()
	if err := w.objects.load(node, w.reasons); err != nil {
		return nil, err
	}
	w.objects.layouts(types)
	if w.attach(true); w.drop == nil {
		return nil, errors.New("the kernel refuses BPF programs at its tracepoint kfree_skb")
	}
	w.attach(false)
	w.again, err = link.AttachTracing(link.TracingOptions{Program: w.objects.OnAgain})
	return w, err
}

func argumentsOf(types *btf.Spec, tracepoint string) (int, error) {
	var t *btf.Typedef
	if err := types.TypeByName(tracepoint, &t); err != nil {
		return 0, err
	}
	if pointer, is := t.Type.(*btf.Pointer); is {
		if f, is := pointer.Target.(*btf.FuncProto); is {
			return len(f.Params) - 1, nil
		}
	}
	return 0, fmt.Errorf("%s is no tracepoint", tracepoint)
}

// Close unloads; then nothing is observed.
func (w *Watch) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attach(false)
	if w.again != nil {
		_ = w.again.Close()
	}
	_ = errors.Join(w.objects.close(), w.names.Close())
	w.objects, w.until = objects{}, nil
}

// Follow begins.
func (w *Watch) Follow(in event.Namespace, addresses []string, until int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, err := strconv.ParseUint(in.Key, 10, 64)
	if w.until == nil || err != nil || key == node || w.objects.Pods.Update(key, pod{}, ebpf.UpdateNoExist) != nil {
		return
	}
	of := followed{until: until}
	for _, a := range addresses {
		host, _, _ := strings.Cut(a, "/")
		if address, err := netip.ParseAddr(host); err == nil {
			f := flow{Protocol: unix.IPPROTO_UDP}
			b := address.As16()
			for i := range f.Address {
				f.Address[i] = binary.NativeEndian.Uint32(b[4*i:])
			}
			if w.objects.Flows.Update(f, key, ebpf.UpdateNoExist) == nil {
				of.flows = append(of.flows, f)
			}
		}
	}
	w.until[in] = of
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Asks notes unanswered datagrams.
func (w *Watch) Asks(in event.Namespace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, _ := strconv.ParseUint(in.Key, 10, 64)
	var p pod
	if w.until != nil && w.objects.Pods.Lookup(key, &p) == nil {
		p.Waits = uint64(clock.Monotonic())
		_ = w.objects.Pods.Update(key, p, ebpf.UpdateExist)
		if of, followed := w.until[in]; followed {
			of.asked = true
			w.until[in] = of
		}
		w.attach(true)
	}
}

// Forget ends.
func (w *Watch) Forget(in event.Namespace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(in)
}

func (w *Watch) forget(in event.Namespace) {
	of, followed := w.until[in]
	if !followed {
		return
	}
	delete(w.until, in)
	for _, f := range of.flows {
		_ = w.objects.Flows.Delete(f)
	}
	key, _ := strconv.ParseUint(in.Key, 10, 64)
	w.clear(key, of.asked)
}

func (w *Watch) clear(key uint64, all bool) {
	var p pod
	_ = errors.Join(w.objects.Pods.LookupAndDelete(key, &p), w.objects.Rules.Delete(ruled{Pod: key}),
		w.objects.Rules.Delete(ruled{Pod: key, Six: 1}))
	if p.Flows > 0 || all {
		kernel.Each(w.objects.Flows, func(f *flow, pod *uint64) {
			if *pod == key {
				_ = w.objects.Flows.Delete(*f)
			}
		})
	}
	if p.Kinds > 0 || all {
		kernel.Each(w.objects.Drops, func(d *drop, _ *seen) {
			if d.Pod == key {
				_ = w.objects.Drops.Delete(*d)
			}
		})
	}
}

// Run attaches while pods wait.
func (w *Watch) Run(ctx context.Context) {
	timer := time.NewTimer(math.MaxInt64)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-timer.C:
		}
		if w.tend(clock.Monotonic()) {
			timer.Reset(every)
		}
	}
}

func (w *Watch) tend(now int64) (follows bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for in, of := range w.until {
		if now > of.until {
			w.forget(in)
		}
	}
	waits := false
	kernel.Each(w.objects.Pods, func(_ *uint64, p *pod) {
		waits = waits || p.Waits != 0 && now-int64(p.Waits) < int64(lingers)
	})
	w.attach(waits)
	if w.until != nil && len(w.until) == 0 {
		w.clear(node, true)
	}
	return len(w.until) > 0
}

func (w *Watch) attach(on bool) {
	switch {
	case on && w.drop == nil:
		w.objects.layouts(nil)
		_ = w.objects.Pods.Update(node, pod{}, ebpf.UpdateNoExist)
		for six := range uint64(2) { // pods may fill it
			_ = w.objects.Rules.Update(ruled{Pod: node, Six: six}, rules{}, ebpf.UpdateNoExist)
		}
		_ = w.objects.Since.Set(uint64(clock.Monotonic()))
		w.drop, _ = link.AttachTracing(link.TracingOptions{Program: w.objects.OnDrop})
	case !on && w.drop != nil:
		_ = w.drop.Close()
		w.drop = nil
	}
}

// Seen lists most first.
func (w *Watch) Seen(in event.Namespace) (all []event.Drop) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, _ := strconv.ParseUint(in.Key, 10, 64)
	type one struct {
		drop
		seen
		event.Drop
	}
	var own, asked []one
	kernel.Each(w.objects.Drops, func(d *drop, s *seen) {
		if s.Count == 0 || d.Pod != key && d.Pod != node {
			return
		}
		o := one{*d, *s, w.read(d, s)}
		if o.Drop.Neighbor {
			asked = append(asked, o)
		} else if d.Pod == key {
			own = append(own, o)
		}
	})
	order := func(a, b one) int {
		return cmp.Or(cmp.Compare(b.Drop.Count, a.Drop.Count), cmp.Compare(fmt.Sprint(a.Drop), fmt.Sprint(b.Drop)))
	}
	slices.SortFunc(own, order)
	slices.SortFunc(asked, order)
	var p pod
	full := w.until != nil && w.objects.Pods.Lookup(node, &p) == nil && p.Kinds >= neighbors
	for _, o := range own {
		if o.Unresolved() {
			if time.Duration(o.Watched) < asks {
				continue
			}
			o.Drop.Guarded = o.seen.Guarded != 0 || full
			for _, a := range asked {
				asker := node
				if o.InPod {
					asker = key
				}
				if a.Pod == asker && a.drop.Neighbor == o.Next && int64(a.Last) >= int64(o.Began)-2*int64(asks) {
					all = append(all, a.Drop)
				}
			}
		}
		all = append(all, o.Drop)
	}
	return all[:min(len(all), most)]
}

func (w *Watch) read(d *drop, s *seen) event.Drop {
	reason, known := w.reasons[d.Reason]
	switch {
	case !known && d.Reason != 0: // of a module
		reason = strconv.FormatUint(uint64(d.Reason), 16)
	case d.Reason == 0 || reason == "NOT_SPECIFIED" && !w.errors:
		reason = ""
	}
	one := event.Drop{
		Reason: reason, Place: w.name(d.Place), Back: d.Back != 0, InPod: d.Inside != 0,
		Device: text.Clean(unix.ByteSliceToString(d.Device[:]), text.Bound), Peer: s.Other.String(),
		Count: uint64(s.Count),
	}
	if d.Neighbor != [4]uint32{} {
		one.Neighbor, one.Peer = true, flow{Address: d.Neighbor}.addr().String()
	}
	if s.Programs == 1 {
		one.Program, one.ProgramID = w.program(s.Code), s.Program
	}
	w.filtered(&one, s, d.Pod)
	return one
}

func (w *Watch) name(address uint64) string { return w.names.Name(clock.Monotonic(), address) }

func (f flow) addr() netip.Addr {
	var b [16]byte
	for i, word := range f.Address {
		binary.NativeEndian.PutUint32(b[4*i:], word)
	}
	return netip.AddrFrom16(b).Unmap()
}

func (f flow) String() string { return netip.AddrPortFrom(f.addr(), f.Port<<8|f.Port>>8).String() }
