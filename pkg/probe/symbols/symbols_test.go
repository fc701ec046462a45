package symbols

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

const kallsyms = `0000000000000000 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff81000100 t mutex_lock.constprop.0
ffffffff81000200 T rtnl_dump_all
ffffffff81000300 D rtnl_mutex
ffffffff81000400 T do_syscall_64
ffffffffc0000100 t xt_find_table_lock	[x_tables]
ffffffffc0000000 t strange	[other]
ffffffffc0000200 t after	[x_tables]
`

// held blocks reads until it is released.
type held struct {
	io.ReadSeeker
	asked, free chan struct{}
}

func (h held) Read(b []byte) (int, error) {
	h.asked <- struct{}{}
	<-h.free
	return h.ReadSeeker.Read(b)
}

func TestNobodyWaitsForNamesOfFunctions(t *testing.T) {
	table := strings.NewReader(kallsyms)
	s := newTable(table)
	slow := held{table, make(chan struct{}, 100), make(chan struct{})}
	s.file = slow
	stack := []uint64{0xffffffff81000150, 0xffffffffc0000010, 0xffffffff81000410}
	harness.Equal(t, s.Lock(1, stack), "", "at first")
	s.Lock(2, stack) // begins to read
	<-slow.asked
	if lock := s.Lock(3, append(stack, 0xffffffff810002ff)); lock != "rtnl" {
		t.Errorf("a lock's owner is known from the beginning: %q", lock)
	}
	close(slow.free)
	got := <-s.answer
	s.answer <- got
	harness.Equal(t, s.Lock(4, stack), "strange", "then")
	s.wait()
}

// unreadable fails to read.
type unreadable struct{ io.ReadSeeker }

func (unreadable) Seek(int64, int) (int64, error) { return 0, io.ErrUnexpectedEOF }

func TestATableThatCannotBeReadAnewIsNotForgotten(t *testing.T) {
	s := newTable(strings.NewReader(kallsyms))
	s.file = unreadable{s.file}
	s.Lock(1, []uint64{0xffffffff81000150})
	s.Lock(2, nil) // begins to read
	got := <-s.answer
	s.answer <- got
	harness.Equal(t, s.Lock(3, []uint64{0xffffffff81000150, 0xffffffff81000200}), "rtnl")
	harness.Equal(t, s.Lock(3, []uint64{0xffffffff81000150, 0xffffffff81000450}), "")
	s.wait()
}

func TestFunctionsThatOwnLocks(t *testing.T) {
	s := newTable(strings.NewReader(kallsyms))
	for address, want := range map[uint64]string{
		0xffffffff810001ff: "", 0xffffffff81000200: "rtnl_dump_all", 0xffffffff810003ff: "rtnl_dump_all", 0xffffffff81000400: "",
		0xffffffffc00000ff: "", 0xffffffffc00001ff: "xt_find_table_lock", 0xffffffffc0000200: "",
	} {
		if got := s.owner(address); got != want {
			t.Errorf("%x: %q, want %q", address, got, want)
		}
	}
}

func TestSymbolsAreBounded(t *testing.T) {
	s := newTable(strings.NewReader(kallsyms))
	for i := range uint64(3 * maxSymbols) {
		s.Lock(int64(i), []uint64{i})
	}
	s.wait()
	harness.Equal(t, len(s.asked), maxAsked, "are asked for")
	for i := range int64(3 * maxSymbols / maxAsked) {
		now := (i + 1) * int64(readRarely)
		for j := range uint64(maxAsked) {
			s.Lock(now, []uint64{uint64(i)<<32 | j})
		}
		if s.answer != nil {
			got := <-s.answer
			s.answer <- got
		}
	}
	if s.take(0); len(s.known) > maxSymbols {
		t.Errorf("%d are known", len(s.known))
	}
	s.wait()
}

func TestTheTableIsReadForLittle(t *testing.T) {
	const waits, rtnl, strange, loaded = 0xffffffff81000150, 0xffffffff81000210, 0xffffffffc0000010, 0xffffffffd0000010
	for name, test := range map[string]struct {
		stack []uint64
		lock  string
		asked []uint64
	}{
		"an owner":                                  {[]uint64{waits, rtnl, strange}, "rtnl", nil},
		"an owner, and below it something new":      {[]uint64{waits, rtnl, loaded}, "rtnl", nil},
		"an owner, and before it something new":     {[]uint64{waits, loaded, rtnl}, "rtnl", []uint64{loaded}},
		"no owner":                                  {[]uint64{waits, strange}, "", []uint64{waits, strange}},
		"no owner, and something new":               {[]uint64{waits, strange, loaded}, "", []uint64{loaded}},
		"no owner, in what nobody calls a function": {[]uint64{0xffffffff80000000}, "", []uint64{0xffffffff80000000}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTable(strings.NewReader(kallsyms))
			if lock := s.Lock(1, test.stack); lock != test.lock || !slices.Equal(s.asked, test.asked) {
				t.Errorf("%q, and asked for are %x", lock, s.asked)
			}
		})
	}
}

func TestATableWithoutAddressesIsNotReadAgain(t *testing.T) {
	s := newTable(strings.NewReader("0000000000000000 T rtnl_dump_all\n0000000000000000 T mutex_lock\n"))
	if lock := s.Lock(1, []uint64{0xffffffff81000150}); lock != "" || len(s.asked) > 0 {
		t.Errorf("%q, and asked for are %x", lock, s.asked)
	}
}

func TestTheTableIsReadLessAndLessOften(t *testing.T) {
	s := newTable(strings.NewReader(kallsyms))
	var last, longest time.Duration
	for now, address := time.Second, uint64(1); now < 10*time.Minute; now, address = now+time.Second, address+1 {
		s.Lock(int64(now), []uint64{address})
		if s.read != int64(now) {
			continue
		}
		got := <-s.answer
		s.answer <- got
		longest = max(longest, now-last)
		last = now
	}
	if longest != readRarely || len(s.known) < 500 {
		t.Errorf("at most %s from one reading to the next, and %d addresses are known", longest, len(s.known))
	}
	s.wait()
}

func TestATableThatNobodyAskedForIsReadSoonAgain(t *testing.T) {
	s := newTable(strings.NewReader(kallsyms))
	read := func(now time.Duration) {
		s.Lock(int64(now), []uint64{uint64(now)}) // asks
		s.Lock(int64(now)+1, nil)                 // begins to read
		if s.read != int64(now)+1 {
			t.Fatalf("at %s it was not read", now)
		}
		got := <-s.answer
		s.answer <- got
		s.Lock(int64(now)+2, nil)
	}
	now := time.Second
	for range 6 {
		read(now)
		now += 2 * readRarely
	}
	harness.Equal(t, s.pause, int64(readRarely), "the pause", time.Duration(s.pause))
	for range 2 {
		now += readAnew
		read(now)
		harness.Equal(t, s.pause, int64(readEvery), "the pause", time.Duration(s.pause))
	}
}

func TestATableThatCouldNotBeReadIsReadAsSoon(t *testing.T) {
	s := newTable(strings.NewReader(kallsyms))
	whole := s.file
	s.file = unreadable{whole}
	for i := range 3 {
		now := int64(i+1) * int64(readEvery)
		s.Lock(now, []uint64{1})
		s.Lock(now, nil) // begins to read
		if s.read != now || s.pause != int64(readEvery) {
			t.Fatalf("read at %s, and the pause is %s", time.Duration(s.read), time.Duration(s.pause))
		}
		got := <-s.answer
		s.answer <- got
		s.Lock(now, nil)
	}
	s.file = whole
	for i, want := range []time.Duration{readEvery, 2 * readEvery} {
		now := int64(i+4) * int64(readEvery)
		s.Lock(now, []uint64{uint64(i) + 2})
		s.Lock(now, nil)
		harness.Equal(t, s.pause, int64(want), "the pause", time.Duration(s.pause))
		got := <-s.answer
		s.answer <- got
		s.Lock(now, nil)
	}
}

func TestOnlyFunctionsAreSymbols(t *testing.T) {
	for line, want := range map[string]string{
		"ffffffff81000100 t mutex_lock.constprop.0":     "mutex_lock",
		"ffffffffc0000100 T xt_find_table\t[x_tables]":  "xt_find_table",
		"ffffffffc0000100 w f":                          "f",
		"ffffffff81000300 D rtnl_mutex":                 "",
		"0000000000000000 T rtnl_dump_all":              "",
		"ffffffff8100030 0 t f":                         "",
		"ffffffff8100030x t f":                          "",
		"":                                              "",
		"ffffffff81000100":                              "",
		"ffffffff81000100 t":                            "",
		"ffffffff81000100ffffffff81000100 t mutex_lock": "",
	} {
		at, name, ok := symbol([]byte(line))
		if ok != (want != "") || ok && (string(name) != want || at>>32 != 0xffffffff) {
			t.Errorf("%q: %x %q %v", line, at, name, ok)
		}
	}
}

func BenchmarkLookUp(b *testing.B) {
	file, err := os.Open("/proc/kallsyms")
	if err != nil {
		b.Skip(err)
	}
	defer file.Close()
	table, err := io.ReadAll(file)
	harness.Check(b, err)
	in := bytes.NewReader(table)
	b.ReportAllocs()
	for b.Loop() {
		lookUp(in, []uint64{0xffffffff81200000, 0xffffffffc0200000})
	}
}
