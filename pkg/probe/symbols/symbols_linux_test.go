package symbols

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func asked(t testing.TB) *kernel {
	t.Helper()
	k, err := openKernel()
	if err != nil {
		t.Skip(err) // needs root and Linux 5.14
	}
	t.Cleanup(func() { _ = k.Close() })
	return k
}

func TestTheKernelNamesWhatItsTableDoes(t *testing.T) {
	k := asked(t)
	file, err := os.Open("/proc/kallsyms")
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	var last uint64
	var lastName string
	compared, same := 0, 0
	for lines := bufio.NewScanner(file); lines.Scan() && compared < 2000; {
		fields := strings.Fields(lines.Text())
		at := harness.Must(strconv.ParseUint(fields[0], 16, 64))(t)
		if !slices.Contains([]string{"t", "T", "w", "W"}, fields[1]) || at == 0 { // data, or hidden (kptr_restrict)
			continue
		}
		if lastName != "" && at > last+1 { // at one address the kernel may choose another name
			compared++
			if k.name(last) == lastName && k.name(at-1) == lastName {
				same++
			}
		}
		last = at
		lastName, _, _ = strings.Cut(fields[2], ".")
	}
	if compared == 0 {
		t.Skip("the addresses are kept from us")
	}
	if same < compared*9/10 {
		t.Errorf("of %d functions %d are called what the table calls them", compared, same)
	}
}

func TestWhatLiesInNoFunctionHasNoName(t *testing.T) {
	k := asked(t)
	for _, at := range []uint64{0, 1, 1 << 40} {
		harness.Equal(t, k.name(at), "", at, "is")
	}
}

func TestTheKernelIsAskedOnce(t *testing.T) {
	names := &dictionary{1: "__mutex_lock", 2: "do_syscall_64", 3: "rtnl_dump_all"}
	s := &Table{kernel: names, known: map[uint64]string{}}
	for _, test := range []struct {
		stack []uint64
		lock  string
		left  int
	}{
		{[]uint64{1, 2}, "do_syscall_64", 1},
		{[]uint64{1, 2, 3}, "rtnl", 0},
		{[]uint64{1, 2, 3}, "rtnl", 0},
		{[]uint64{1, 4, 2}, "do_syscall_64", 0},
	} {
		if lock := s.Lock(1, test.stack); lock != test.lock || len(*names) != test.left {
			t.Errorf("%x: %q, and %d were not asked for, want %q and %d", test.stack, lock, len(*names), test.lock, test.left)
		}
	}
	(*names)[1] = "pipe_write"
	harness.Equal(t, s.Lock(int64(readAnew), []uint64{1}), "pipe", "of a module that took its place")
	for i := range uint64(3 * maxSymbols) {
		s.Lock(1, []uint64{i})
	}
	if len(s.known) > maxSymbols {
		t.Errorf("%d are known", len(s.known))
	}
	harness.Check(t, s.Close())
	harness.Equal(t, new(Table).Lock(1, []uint64{1}), "", "by a table without names")
}

// dictionary is a kernel that forgets questions.
type dictionary map[uint64]string

func (d *dictionary) name(address uint64) string {
	defer delete(*d, address)
	return (*d)[address]
}

func (*dictionary) Close() error { return nil }
