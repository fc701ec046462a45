package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

const (
	// tellSlack is the variable by which the test's program calls sayOwnSlack.
	tellSlack = "CNISCOPE_TEST_SLACK"
	// unreadable is what it says of a thread at which it may not look.
	unreadable = "unreadable"
)

// All threads of cniscope run may be, Go's monitor thread too, and it executes itself once.
func TestThreadsMayBeWokenLate(t *testing.T) {
	self := harness.Must(os.Executable())(t)
	c := exec.Command(self, "run")
	c.Env = append(os.Environ(), tellSlack+"=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	threads := strings.Fields(string(out))
	if slices.Contains(threads, unreadable) {
		t.Skip("needs CAP_SYS_NICE: looks at other threads")
	}
	if len(threads) < 2 {
		t.Errorf("%d threads", len(threads))
	}
	for _, slack := range threads {
		if slack != strconv.FormatInt(int64(patient), 10) {
			t.Errorf("a thread may be woken %s ns late", slack)
		}
	}
}

// A process whose program is replaced goes on as it is, and does not execute what lies there.
func TestWhatTookTheProgramsPlaceIsNotExecuted(t *testing.T) {
	self, err := os.Executable()
	harness.Check(t, err)
	installed := filepath.Join(t.TempDir(), "cniscope")
	// By cp: a descriptor to write by, inherited by what another test starts, would have it busy.
	if out, err := exec.Command("cp", self, installed).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	running := harness.Must(os.Open(installed))(t)
	defer func() { _ = running.Close() }()
	next := installed + ".new"
	harness.Check(t, errors.Join(os.WriteFile(next, []byte("#!/bin/sh\necho the next version\n"), 0o755), os.Rename(next, installed)))
	c := exec.Command("/proc/self/fd/3", Connector) // the first of ExtraFiles
	c.ExtraFiles, c.Env = []*os.File{running}, append(os.Environ(), tellSlack+"=1")
	var out []byte
	withSlack(t, patient, func() { out, err = c.CombinedOutput() })
	if err != nil || !slices.Contains(strings.Fields(string(out)), strconv.FormatInt(int64(patient), 10)) {
		t.Errorf("%v\n%s", err, out)
	}
}

// withSlack has what do starts be woken so late by default.
func withSlack(t *testing.T, slack time.Duration, do func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := harness.Must(unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0))(t)
	harness.Check(t, unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0))
	do()
	harness.Check(t, unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(before), 0, 0, 0))
}

func TestWhoseThreadsMayBeWokenLate(t *testing.T) {
	t.Setenv("NRI_PLUGIN_SOCKET", "")
	for line, want := range map[string]time.Duration{
		"cniscope run --config x": patient, "cniscope connector": punctual, "cniscope": 0, "cniscope ps": 0, "cniscope show run": 0,
	} {
		if got, wanted := slackOf(strings.Fields(line)); got != want || wanted != (want != 0) {
			t.Errorf("%s: %s, %t", line, got, wanted)
		}
	}
	t.Setenv("NRI_PLUGIN_SOCKET", "3")
	if got, _ := slackOf([]string{"10-cniscope"}); got != patient {
		t.Errorf("started by containerd: %s", got)
	}
}

// sayOwnSlack does what cniscope does first, and says how late each of its threads may be woken, in nanoseconds.
func sayOwnSlack() {
	SetSlack(os.Args)
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		slack, err := os.ReadFile("/proc/" + thread.Name() + "/timerslack_ns") // nothing where it has ended
		if errors.Is(err, fs.ErrPermission) {
			slack = []byte(unreadable)
		}
		fmt.Println(strings.TrimSpace(string(slack)))
	}
}

func init() {
	if os.Getenv(tellSlack) != "" {
		sayOwnSlack()
		os.Exit(0)
	}
}

// A node's first process, and a pod: a mount namespace of its own, in which two folders of the node lie on
// a file system of the pod's.
const firstProcess = `unshare --mount sh -c "$0" sh "$@"; exit $?`

const pod = `set -e
mount --make-rprivate /
mount --bind "$1" "$3"
mount -t tmpfs tmpfs "$1"
for dir in empty used; do
	mkdir "$1/$dir"
	mount --bind "$3/$dir" "$1/$dir"
done
mkdir "$1/own"
exec "$2" -test.run '^TestFoldersOfTheNodeGoWithThePod$'`

func TestFoldersOfTheNodeGoWithThePod(t *testing.T) {
	if dir := os.Getenv("CNISCOPE_TEST_LEAVE"); dir != "" {
		leaveNode(filepath.Join(dir, "empty"), filepath.Join(dir, "used"), filepath.Join(dir, "own"), filepath.Join(dir, "missing"))
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes namespaces")
	}
	dir := t.TempDir()
	for _, name := range []string{"empty", "used", "own"} {
		harness.Check(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	harness.Check(t, os.WriteFile(filepath.Join(dir, "used", "file"), nil, 0o600))
	// Not a pod: nothing is removed.
	leaveNode(filepath.Join(dir, "empty"))
	if _, err := os.Stat(filepath.Join(dir, "empty")); err != nil {
		t.Fatalf("a service has removed its folder: %v", err)
	}
	self := harness.Must(os.Executable())(t)
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", firstProcess, pod, dir, self, t.TempDir())
	cmd.Env = append(os.Environ(), "CNISCOPE_TEST_LEAVE="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "empty")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the empty folder is still there: %v", err)
	}
	for _, name := range []string{"used/file", "own"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
}
