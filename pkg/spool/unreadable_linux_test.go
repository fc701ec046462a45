package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

// An unreadable segment is reported with the reason, and the others are read.
func TestWhatCannotBeReadIsNamed(t *testing.T) {
	whole := encode(nil, named("its own"))
	for name, tt := range map[string]struct {
		make func(path string) error
		want string
		own  bool
	}{
		"a link":          {func(p string) error { return os.Symlink("/etc/hostname", p) }, "it is a symbolic link", false},
		"a dangling link": {func(p string) error { return os.Symlink("nothing", p) }, "it is a symbolic link", false},
		"a pipe":          {func(p string) error { return unix.Mkfifo(p, 0o600) }, "it is a named pipe", false},
		"a directory":     {func(p string) error { return os.Mkdir(p, 0o700) }, "it is a directory", false},
		"a socket":        {func(p string) error { return unix.Mknod(p, unix.S_IFSOCK|0o600, 0) }, "it is a socket", false},
		"garbage": {
			func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("x", 1000)), 0o600) },
			"is damaged from byte 0 to 1000", false,
		},
		"zeros": {
			func(p string) error { return os.WriteFile(p, make([]byte, 100_000), 0o600) },
			"is damaged from byte 0 to 100000", false,
		},
		"garbage behind": {func(p string) error {
			return os.WriteFile(p, append(whole[:len(whole):len(whole)], "xyz"...),
				0o600)
		}, "is damaged from byte", true},
		"200 GB": {
			func(p string) error { return sparse(p, whole, 200<<30) },
			"from byte 8388608 on: it has 214748364800 bytes, and a segment has up to 8388608", true,
		},
		"a byte too many": {func(p string) error { return sparse(p, whole, maxSegment+1) }, "it has 8388609 bytes", true},
	} {
		for at := range 3 { // the oldest, in the middle, the newest
			t.Run(fmt.Sprint(name, " ", at), func(t *testing.T) {
				dir := t.TempDir()
				var want []string
				for i := range 3 {
					path := filepath.Join(dir, segment{sequence: uint64(i + 1)}.name())
					if i == at {
						harness.Check(t, tt.make(path))
						if tt.own {
							want = append(want, "its own")
						}
						continue
					}
					want = append(want, fmt.Sprint(i))
					harness.Check(t, os.WriteFile(path, encode(nil, named(fmt.Sprint(i))), 0o600))
				}
				got, errs := readAll(t, dir, noon.Add(-time.Hour))
				same(t, "what is read", got, want)
				file := segment{sequence: uint64(at + 1)}.name()
				if name == "zeros" && at == 2 { // the power failed before the first record was on disk
					if errs != nil {
						t.Errorf("%v", errs)
					}
					return
				}
				if len(errs) != 1 || !strings.Contains(errs[0].Error(), tt.want) || !strings.Contains(errs[0].Error(), file) {
					t.Errorf("%v, want %s of %s", errs, tt.want, file)
				}
			})
		}
	}
}

func sparse(path string, begins []byte, size int64) error {
	return errors.Join(os.WriteFile(path, begins, 0o600), os.Truncate(path, size))
}

// A segment without permission is reported, and the others are read.
func TestASegmentThatMayNotBeOpened(t *testing.T) {
	harness.Root(t)
	dir := harness.Must(os.MkdirTemp("", "spool"))(t) // t.TempDir is root's alone
	defer os.RemoveAll(dir)
	harness.Check(t, os.Chmod(dir, 0o755))
	for i, mode := range []os.FileMode{0o644, 0o600, 0o644} {
		path := filepath.Join(dir, segment{sequence: uint64(i)}.name())
		harness.Check(t, os.WriteFile(path, encode(nil, named(fmt.Sprint(i))), mode))
	}
	var got []string
	var errs []error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends
		_, _ = unix.SetfsuidRetUid(65534)
		got, errs = readAll(t, dir, noon.Add(-time.Hour))
	}()
	<-done
	same(t, "what is read", got, []string{"0", "2"})
	if len(errs) != 1 || !errors.Is(errs[0], os.ErrPermission) || !strings.Contains(errs[0].Error(),
		"0000000000000001.segment") {
		t.Errorf("%v", errs)
	}
}

// An incomplete last record of the newest segment is no damage.
func TestARecordThatIsBeingWrittenIsNoDamage(t *testing.T) {
	first, second := encode(nil, named("first")), encode(nil, named("second"))
	dir := t.TempDir()
	for cut := range second {
		path := filepath.Join(dir, segment{sequence: 1}.name())
		harness.Check(t, os.WriteFile(path, append(first[:len(first):len(first)], second[:cut]...), 0o600))
		got, errs := readAll(t, dir, noon.Add(-time.Hour))
		same(t, fmt.Sprint(cut), got, []string{"first"})
		if errs != nil {
			t.Errorf("%d bytes of it: %v", cut, errs)
		}
	}
}

// Open leaves a segment that is too large, and begins a new one.
func TestOpenLeavesASegmentThatIsTooLarge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, segment{sequence: 1}.name())
	harness.Check(t, sparse(path, encode(nil, named("its own")), 200<<30))
	s := mustOpen(t, Options{Dir: dir, MaxBytes: 1 << 50, MaxAge: 100 * 365 * 24 * time.Hour})
	appendAll(t, s, noon, "next")
	var got []string
	for range 2 {
		found, err := s.Peek(1, 1<<20)
		if err != nil || len(found) != 1 {
			t.Fatalf("%v, %v", found, err)
		}
		got = append(got, string(found[0].Data))
		harness.Check(t, s.Advance(found[0].Next))
	}
	same(t, "what is sent", got, []string{"its own", "next"})
	if info, err := os.Stat(path); err != nil || info.Size() != 200<<30 {
		t.Errorf("%v, %v", info, err)
	}
	// It is removed to make room.
	harness.Check(t, s.Close())
	s = mustOpen(t, Options{Dir: dir, MaxBytes: 1 << 20, MaxAge: 100 * 365 * 24 * time.Hour})
	appendAll(t, s, noon, "one more")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is kept where there is no room: %v", err)
	}
}
