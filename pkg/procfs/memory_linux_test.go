package procfs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

func TestAFileThatHangsIsGivenUp(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "environ")
	harness.Check(t, unix.Mkfifo(pipe, 0o600))
	p := &Memory{patience: Patience{Each: time.Millisecond, Most: 2}}
	for range 10 {
		if _, err := p.strings(pipe); !errors.Is(err, ErrHangs) {
			t.Fatal(err)
		}
	}
	harness.Equal(t, p.patience.hung.Load(), 2, "threads hang")
	// An end that is open for both directions releases every reader.
	both := harness.Must(os.OpenFile(pipe, os.O_RDWR, 0))(t)
	_ = both.Close()
	harness.Until(t, "no read hangs", func() bool { return p.patience.hung.Load() == 0 })
	p.patience.Each = time.Hour
	if _, err := p.strings("/proc/self/environ"); err != nil {
		t.Error("after the reads ended:", err)
	}
}

func TestAFileThatIsThereIsRead(t *testing.T) {
	p := NewMemory()
	p.patience.Each = time.Hour
	if data, err := p.Arguments(os.Getpid()); err != nil || !slices.Equal(data, os.Args) {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := p.Environment(1 << 30); !Gone(err) {
		t.Error(err)
	}
}

// prctlMap is struct prctl_mm_map (include/uapi/linux/prctl.h).
type prctlMap struct {
	startCode, endCode, startData, endData, startBreak, brk, startStack, argStart, argEnd, envStart, envEnd, auxv uint64
	auxvSize, exe                                                                                                 uint32
}

// Before: a process without any right made its environment gigabytes, which every reader took into memory.
func TestADeclaredEnvironmentIsReadToABound(t *testing.T) {
	s := harness.Must(os.ReadFile("/proc/self/stat"))(t)
	fields := strings.Fields(string(s[bytes.LastIndexByte(s, ')')+2:])) // from the third
	at := func(field int) uint64 {
		return harness.Must(strconv.ParseUint(fields[field-3], 10, 64))(t)
	}
	own := prctlMap{
		startCode: at(26), endCode: at(27), startStack: at(28), startData: at(45), endData: at(46), startBreak: at(47), brk: at(47),
		argStart: at(48), argEnd: at(49), envStart: at(50), envEnd: at(51), exe: ^uint32(0),
	}
	declare := func(m prctlMap) error {
		const set, whole = 35, 14 // PR_SET_MM, PR_SET_MM_MAP
		return unix.Prctl(set, whole, uintptr(unsafe.Pointer(&m)), unsafe.Sizeof(m), 0)
	}
	huge := harness.Must(unix.Mmap(-1, 0, 4*memoryMax, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))(t)
	defer func() { _ = unix.Munmap(huge) }()
	declared := own
	declared.envStart = uint64(uintptr(unsafe.Pointer(&huge[0])))
	declared.envEnd = declared.envStart + uint64(len(huge))
	harness.Check(t, declare(declared))
	defer func() { harness.Check(t, declare(own)) }()
	m := NewMemory()
	m.patience.Each = time.Hour
	if env, err := m.Environment(os.Getpid()); !errors.Is(err, ErrCut) || len(env) > memoryMax {
		t.Errorf("%d variables: %v", len(env), err)
	}
}
