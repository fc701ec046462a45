package etw_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/test/harness"
)

const (
	ms     = int64(time.Millisecond)
	window = 55 * time.Millisecond
)

type taker struct {
	soon  []uint32
	taken []etw.Change
	lines []string
	lost  uint64
	at    int64
}

func (k *taker) Soon(pid uint32, _ int64) { k.soon = append(k.soon, pid) }
func (k *taker) Lost(n uint64)            { k.lost += n }
func (k *taker) Advance(read int64)       { k.at = read }
func (k *taker) Take(c etw.Change) {
	what := map[proctracker.Kind]string{proctracker.Began: "begins", proctracker.Ended: "ends"}[c.Kind]
	k.taken = append(k.taken, c)
	k.lines = append(k.lines, fmt.Sprintf("%d %d %s %s|%s", c.Time/1000, c.PID, what, c.Image, c.CommandLine))
}

func kernel(what etw.What, at int64, pid, parent uint32) etw.Process {
	p := etw.Process{Provider: etw.KernelProcess, What: what, Time: at, PID: pid, Created: int64(pid) * 1e7}
	if what == etw.End {
		p.Code, p.Image = 3, "long-name-of-a"
	} else {
		p.Parent, p.Image = parent, `\Device\X\long-name-of-a-program.exe`
	}
	return p
}

func system(what etw.What, at int64, pid, parent uint32) etw.Process {
	return etw.Process{
		Provider: etw.SystemProcess, What: what, Time: at, PID: pid, Parent: parent, Code: 3,
		Image: "long-name-of-a-program.exe", CommandLine: fmt.Sprint("run ", pid),
	}
}

func TestTwoWordsAreOneChange(t *testing.T) {
	k := &taker{}
	s := etw.NewSequencer(k, window)
	s.Take(system(etw.Start, 10*ms+1000, 7, 4)) // the other session delivers later
	harness.EqualSlices(t, k.soon, []uint32{7}, "it was not told soon")
	s.Take(kernel(etw.Start, 10*ms, 7, 4))
	s.Take(kernel(etw.End, 12*ms, 7, 4))
	s.Take(system(etw.End, 12*ms+3000, 7, 4))
	if s.Advance(10*ms - 1 + int64(window)); len(k.taken) != 0 {
		t.Error("its turn has not come")
	}
	if s.Advance(12*ms + int64(window)); len(k.taken) != 2 || len(k.soon) != 1 || k.at != 12*ms {
		t.Fatalf("%+v", k)
	}
	want := etw.Change{
		Notice:  proctracker.Notice{Kind: proctracker.Began, Time: 10 * ms, PID: 7, Parent: 4},
		Created: 7e7, Image: `\Device\X\long-name-of-a-program.exe`, CommandLine: "run 7",
	}
	harness.Equal(t, k.taken[0], want)
	want = etw.Change{
		Notice:  proctracker.Notice{Kind: proctracker.Ended, Time: 12 * ms, PID: 7, Code: 3},
		Created: 7e7, Image: "long-name-of-a", CommandLine: "run 7",
	}
	harness.Equal(t, k.taken[1], want)
	if st := s.Stats(); st.Events != 4 || st.Changes != 2 || st.Single != 0 || st.Late != 0 {
		t.Errorf("%+v", st)
	}
}

func TestOneSessionIsEnough(t *testing.T) {
	for _, tell := range []func(etw.What, int64, uint32, uint32) etw.Process{kernel, system} {
		k := &taker{}
		s := etw.NewSequencer(k, window)
		s.Take(tell(etw.Start, 10*ms, 7, 4))
		s.Take(tell(etw.End, 11*ms, 7, 4))
		s.Advance(1000 * ms)
		if len(k.taken) != 2 || k.taken[0].Parent != 4 || k.taken[1].Code != 3 || s.Stats().Single != 2 {
			t.Errorf("%+v", k.taken)
		}
	}
}

// Two processes have one PID, with interleaved reports.
func TestANumberThatIsUsedAgain(t *testing.T) {
	k := &taker{}
	s := etw.NewSequencer(k, window)
	s.Take(kernel(etw.Start, 10*ms, 7, 4))
	s.Take(kernel(etw.End, 20*ms, 7, 4))
	s.Take(kernel(etw.Start, 25*ms, 7, 5))
	s.Take(system(etw.Start, 10*ms+900, 7, 4))
	s.Take(system(etw.End, 20*ms+900, 7, 4))
	s.Take(system(etw.Start, 25*ms+900, 7, 5))
	s.Advance(1000 * ms)
	if len(k.taken) != 3 || s.Stats().Single != 0 || k.taken[0].Parent != 4 || k.taken[2].Parent != 5 {
		t.Errorf("%v", k.lines)
	}
}

func TestWhatComesLateIsTakenAtOnce(t *testing.T) {
	k := &taker{}
	s := etw.NewSequencer(k, window)
	s.Advance(100*ms + int64(window))
	s.Take(kernel(etw.Start, 90*ms, 7, 4))
	s.Advance(101*ms + int64(window))
	if len(k.taken) != 1 || k.taken[0].Time != 90*ms || s.Stats().Late != 1 {
		t.Errorf("%+v %+v", k.taken, s.Stats())
	}
}

func TestWhoRanAlreadyIsNoChange(t *testing.T) {
	k := &taker{}
	s := etw.NewSequencer(k, window)
	s.Take(system(etw.Present, 10*ms, 7, 4))
	s.Take(kernel(etw.Present, 40*ms, 7, 4))
	s.Take(system(etw.Remains, 40*ms, 7, 4))
	s.Take(system(etw.Defunct, 40*ms, 8, 4))
	s.Advance(1000 * ms)
	if len(k.taken)+len(k.soon) != 0 || s.Stats().Events != 0 {
		t.Errorf("%+v", k.taken)
	}
}

func TestLossesAreHandedOn(t *testing.T) {
	k := &taker{}
	s := etw.NewSequencer(k, window)
	if s.Lost(0, 0); k.lost != 0 {
		t.Error("nothing was lost")
	}
	if s.Lost(1, 2); k.lost != 3 || s.Stats().LostEvents != 1 || s.Stats().LostBuffers != 2 {
		t.Error(k.lost, s.Stats())
	}
}

// Within the window, any order of delivery gives the same changes.
func TestInWhateverOrderTheyCome(t *testing.T) {
	var truth []etw.Process
	for i := range uint32(50) {
		at := int64(i)*3*ms + 1000*ms
		truth = append(truth, kernel(etw.Start, at, 100+4*(i%9), 4), system(etw.Start, at+1000, 100+4*(i%9), 4),
			kernel(etw.End, at+20*ms, 100+4*(i%9), 4), system(etw.End, at+20*ms+300, 100+4*(i%9), 4))
	}
	var want []string
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 17))
		type delivery struct {
			at int64
			p  etw.Process
		}
		var deliveries []delivery
		for _, p := range truth {
			deliveries = append(deliveries, delivery{p.Time + random.Int64N(int64(window)), p})
		}
		slices.SortFunc(deliveries, func(a, b delivery) int { return int(a.at - b.at) })
		k := &taker{}
		s := etw.NewSequencer(k, window)
		for _, d := range deliveries {
			s.Advance(d.at)
			s.Take(d.p)
		}
		s.Advance(1 << 60)
		if seed == 0 {
			want = k.lines
		}
		if st := s.Stats(); st.Late != 0 || st.Single != 0 || st.Changes != 100 || !slices.Equal(k.lines, want) {
			t.Fatalf("seed %d: %+v\n%v\nwant\n%v", seed, st, k.lines, want)
		}
	}
}
