package history

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// slowLine is a slow pod's line with texts of practical length.
func slowLine(i int) control.Line {
	return control.Line{
		Time: began.Add(time.Duration(i) * time.Second), Node: "node-a", Namespace: fmt.Sprintf("team-%d", i%20),
		Pod: fmt.Sprintf("checkout-service-%08x-%05x", i*2654435761%(1<<32), i), PodUID: fmt.Sprintf("%08x-1111-2222-3333-444455556666", i),
		Sandbox: strings.Repeat(fmt.Sprintf("%08x", i), 8), Command: "ADD", IfName: "eth0", Network: "k8s-pod-network", Plugin: "calico",
		Duration: time.Duration(i) * time.Millisecond, Result: control.Slow, Cause: "file_lock",
		Verdict: fmt.Sprintf("4.%ds of 5.%ds: iptables waited for file lock /run/xtables.lock, held by iptables-restor "+
			"(pid %d, child of kube-proxy) for pod team-7/other-%d; up to 12 other calls were in progress", i%10, i%7, i, i),
		Own: fmt.Sprintf("4.%ds of 5.%ds: iptables waited for file lock /run/xtables.lock, held by iptables-restor "+
			"(pid %d, child of kube-proxy) for another pod; up to 12 other calls were in progress", i%10, i%7, i),
		Remedy: "run kube-proxy in mode nftables or raise its minSyncPeriod, or switch the node to iptables-nft, which " +
			"takes no lock",
		Certain: true, Foreign: true, TraceID: strings.Repeat(fmt.Sprintf("%08x", i), 4),
	}
}

func ordinaryLine(i int) control.Line {
	l := slowLine(i)
	l.Result, l.Cause, l.Verdict, l.Own, l.Remedy, l.Certain, l.Foreign = control.Ordinary, "", "", "", "", false, false
	return l
}

func all(t *testing.T, h *History, q control.Query) control.Operations {
	t.Helper()
	return h.Operations(t.Context(), q).Collect()
}

func TestALineComesBackAsItWas(t *testing.T) {
	h := New("node-a", began)
	lines := []control.Line{
		slowLine(1), ordinaryLine(2),
		{
			Time: began, Node: "node-a", Command: "DEL", Result: control.Failed, Error: "it said: \u00e9", Sandbox: "not hex",
			PodUID: "ABCD", TraceID: "abc",
		},
	}
	for i := range lines {
		h.Add(lines[i])
		lines[i].Seq = uint64(began.UnixMilli()) + uint64(i)
	}
	got := all(t, h, control.Query{})
	if !reflect.DeepEqual(got.Operations, lines) || got.Next != lines[2].Seq || !got.Since.Equal(began) || got.Of != 3 {
		t.Errorf("%+v", got)
	}
}

// The last 10,000 operations, even slow ones, fit into 4 MiB of heap.
func TestTenThousandInFourMebibytes(t *testing.T) {
	for name, line := range map[string]func(int) control.Line{"ordinary": ordinaryLine, "slow": slowLine} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			h := New("node-a", began)
			for i := range 3 * Lines {
				h.Add(line(i))
			}
			took := heap() - before
			got := all(t, h, control.Query{})
			t.Logf("%d lines in %d KiB", len(got.Operations), took>>10)
			if took > 4<<20 {
				t.Errorf("%d bytes of heap", took)
			}
			if n := len(got.Operations); n < Lines || n >= Lines+chunkLines {
				t.Errorf("%d lines", n)
			}
			first, last := got.Operations[0], got.Operations[len(got.Operations)-1]
			if last.Pod != line(3*Lines-1).Pod || last.Seq-first.Seq != uint64(len(got.Operations)-1) {
				t.Errorf("from %+v to %+v", first, last)
			}
			if want := first.Time.Add(-time.Second); !got.Since.Equal(want) {
				t.Errorf("since %s, want %s", got.Since, want)
			}
			runtime.KeepAlive(h)
		})
	}
}

// Incompressible lines of maximum length displace early lines, but need no more memory.
func TestLongLinesAreFewer(t *testing.T) {
	for name, letters := range map[string]int{"names": 200, "one letter over": 254, "all": 600} {
		before, most := heap(), int64(0)
		h := New("node-a", began)
		for i := range Lines / 2 {
			l := slowLine(i)
			for _, text := range []*string{&l.Namespace, &l.Pod, &l.IfName, &l.Network, &l.Verdict, &l.Own, &l.Remedy, &l.Error} {
				*text = random(letters)
			}
			if h.Add(l); i%1000 == 999 {
				most = max(most, heap()-before)
			}
		}
		n := len(all(t, h, control.Query{}).Operations)
		t.Logf("%s: %d lines in %d KiB", name, n, most>>10)
		if most > 4<<20 || n < 1000 || h.forgotten["bytes"] == 0 {
			t.Errorf("%s: %d lines, %d bytes of heap, forgotten %v", name, n, most, h.forgotten)
		}
		runtime.KeepAlive(h)
	}
}

func random(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('0' + rand.IntN(64))
	}
	return string(text)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestWhatIsAskedFor(t *testing.T) {
	h := New("node-a", began)
	for i := range 1000 {
		l := ordinaryLine(i)
		if i%10 == 0 {
			l = slowLine(i)
		}
		h.Add(l)
	}
	zero := uint64(began.UnixMilli())
	for name, test := range map[string]struct {
		q    control.Query
		want []int
		n    int
		of   int
	}{
		"all":                  {control.Query{}, []int{0, 999}, 1000, 1000},
		"the latest":           {control.Query{Limit: 3}, []int{997, 999}, 3, 1000},
		"the next":             {control.Query{After: zero + 4, Limit: 3}, []int{5, 7}, 3, 995},
		"one pod":              {control.Query{Pod: slowLine(40).Pod}, []int{40, 40}, 1, 1},
		"one namespace":        {control.Query{Namespace: "team-3"}, []int{3, 983}, 50, 50},
		"slow ones":            {control.Query{Problems: true}, []int{0, 990}, 100, 1000},
		"slow ones of a time":  {control.Query{Problems: true, Since: began.Add(995 * time.Second)}, nil, 0, 5},
		"since":                {control.Query{Since: began.Add(995 * time.Second)}, []int{995, 999}, 5, 5},
		"a pod that is not":    {control.Query{Pod: "web-0"}, nil, 0, 0},
		"what another run had": {control.Query{After: zero + 5000, Limit: 1}, []int{999, 999}, 1, 1000},
	} {
		got := all(t, h, test.q)
		if len(got.Operations) != test.n || got.Of != test.of {
			t.Errorf("%s: %d lines of %d", name, len(got.Operations), got.Of)
			continue
		}
		if test.n > 0 && (got.Operations[0].Seq != zero+uint64(test.want[0]) ||
			got.Operations[test.n-1].Seq != zero+uint64(test.want[1])) {
			t.Errorf("%s: from %d to %d", name, got.Operations[0].Seq-zero, got.Operations[test.n-1].Seq-zero)
		}
	}
}

// A slow follower gets each line once, and the number of missed ones.
func TestAFollowerHasEachLineOnce(t *testing.T) {
	h := New("node-a", began)
	for i := range Lines {
		h.Add(ordinaryLine(i))
	}
	var seen []uint64
	after := uint64(0)
	for first := true; ; first = false {
		q := control.Query{After: after, Limit: 700}
		if first {
			q = control.Query{After: uint64(began.UnixMilli()), Limit: 700}
		}
		got := all(t, h, q)
		for _, l := range got.Operations {
			seen = append(seen, l.Seq)
		}
		if after = got.Next; len(got.Operations) == 0 {
			break
		}
	}
	if len(seen) != Lines-1 || !slices.IsSorted(seen) || len(slices.Compact(seen)) != Lines-1 {
		t.Errorf("%d lines", len(seen))
	}
	for i := range 2 * Lines {
		h.Add(ordinaryLine(i))
	}
	got := all(t, h, control.Query{After: after})
	if uint64(len(got.Operations))+got.Forgotten != 2*Lines || got.Forgotten == 0 {
		t.Errorf("%d lines, %d forgotten", len(got.Operations), got.Forgotten)
	}
}

// A waiting request is answered by the first matching line or at its timeout.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New("node-a", began)
		h.Add(ordinaryLine(0))
		asked := time.Now()
		q := control.Query{After: uint64(began.UnixMilli()), Pod: slowLine(7).Pod, Wait: 30 * time.Second}
		go func() {
			for i := range 10 {
				time.Sleep(time.Second)
				h.Add(ordinaryLine(i))
			}
		}()
		got := all(t, h, q)
		if len(got.Operations) != 1 || time.Since(asked) != 8*time.Second {
			t.Errorf("%+v after %s", got, time.Since(asked))
		}
		q.After, asked = got.Next, time.Now()
		if got = all(t, h, q); len(got.Operations) != 0 || time.Since(asked) != 30*time.Second {
			t.Errorf("%+v after %s", got, time.Since(asked))
		}
	})
}

// Readers and the writer are safe together (-race), and no reader blocks the writer.
func TestReadersBesideTheWriter(t *testing.T) {
	h := New("node-a", began)
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for l := range h.Operations(t.Context(), control.Query{}).Lines {
					if l.Command != "ADD" {
						t.Error(l)
						return
					}
				}
			}
		})
	}
	for i := range 5000 {
		h.Add(slowLine(i))
	}
	close(stop)
	readers.Wait()
}

// After the clock is set back, the history begins at its first line's end, or
// at the last removed line's.
func TestAMemoryBeginsBeforeItsLinesWhenEarlierOnesAreForgotten(t *testing.T) {
	const step = Lines + chunkLines/2 // in the middle of a chunk
	h := New("node-a", began)
	var ended []time.Time
	for i := range 3 * Lines {
		l := ordinaryLine(i)
		if i >= step {
			l.Time = l.Time.AddDate(-10, 0, 0)
		}
		h.Add(l)
		ended = append(ended, l.Time)
		if i%chunkLines != 0 && i != step {
			continue
		}
		v, _ := h.look()
		earliest := slices.MinFunc(ended[v.first()-uint64(began.UnixMilli()):], time.Time.Compare)
		if v.since.After(earliest) || v.since.Before(earliest.Add(-time.Second)) {
			t.Fatalf("after line %d it begins at %s, and its earliest line ended at %s", i, v.since, earliest)
		}
	}
}
