//go:build linux

package scenarios

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

const delaysDir = "CNISCOPE_TEST_DELAYS_DIR"

// slowRunc loses the seconds that a file of DIR has, at the place that its name has.
const slowRunc = `#!/bin/bash
for a; do
	case $a in create | start) verb=$a ;; esac
	[ "$before" = --bundle ] && bundle=$a
	before=$a
done
at() { [ -e "DIR/$1" ] && read -r t <"DIR/$1"; }
at "runs-$verb" && sleep "$t"
at "waits-$verb" && exec 9<>DIR/fifo && read -rt "$t" -u 9
if at "computes-$verb"; then
	until=$((${EPOCHREALTIME/./} + 10#${t/./}00000))
	while [ "${EPOCHREALTIME/./}" -lt $until ]; do :; done
fi
if [ "$verb" = create ]; then
	for kind in prestart createRuntime poststart; do
		at "hook-$kind" && sed -i "s|^{|{\"hooks\":{\"$kind\":[{\"path\":\"DIR/hook-of-$kind\",\"args\":[\"hook\",\"$t\"]}]},|" "$bundle/config.json"
	done
	if at stops-create; then
		RUNC "$@"
		code=$?
		read -r runtime <DIR/runtime
		kill -STOP "$runtime"
		echo >DIR/stopped
		exit $code
	fi
fi
exec RUNC "$@"
`

const slowShim = `#!/bin/bash
[ -e DIR/shim ] && read -r t <DIR/shim && [ "${*: -1}" = start ] && exec 9<>DIR/fifo && read -rt "$t" -u 9
exec SHIM "$@"
`

// stopRuntime is a plugin that stops the runtime as its last act.
func stopRuntime() error {
	dir := os.Getenv(delaysDir)
	if _, err := os.Stat(filepath.Join(dir, "stops-network")); err != nil {
		return nil
	}
	if err := syscall.Kill(os.Getppid(), syscall.SIGSTOP); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "stopped"), nil, 0o600)
}

// delays are places of a start, each with its cause and what the verdict says.
var delays = map[string][2]string{
	"shim":               {"shim", "shim containerd-shim-runc-v2 started"},
	"runs-create":        {"oci_runtime", "slow-runc create ran sleep"},
	"runs-start":         {"oci_runtime", "slow-runc start ran sleep"},
	"waits-create":       {"oci_runtime", "slow-runc create waited"},
	"waits-start":        {"oci_runtime", "slow-runc start waited"},
	"computes-create":    {"oci_runtime", "slow-runc create (computed|waited for a CPU)"},
	"hook-prestart":      {"oci_hook", "slow-runc create ran OCI hook hook-of-prestart"},
	"hook-createRuntime": {"oci_hook", "slow-runc create ran OCI hook hook-of-createRuntime"},
	"hook-poststart":     {"oci_hook", "slow-runc create ran OCI hook hook-of-poststart"}, // runc runs them early
	"stops-network":      {"runtime", "the runtime ran no program after the network was set up"},
	"stops-create":       {"runtime", "the runtime ran no program after slow-runc create and before (slow-runc start|NRI)"},
	"scans netns":        {"runtime", "the runtime mounted no network namespace after it was asked for the sandbox"},
	"scans plugins":      {"runtime", "the runtime ran no plugin after it mounted the network namespace"},
	"nri sleeps":         {"nri_plugin", "NRI plugin sleeps .pid"},
	"nri naps":           {"nri_plugin", "NRI plugin naps .pid"},
	"nri hangs":          {"nri_plugin", "NRI plugin nri-actor .pid"},
	"nri dies":           {"nri_plugin", "NRI plugin nri-actor .pid"},
}

// Delays at random places of a sandbox's start have the right cause and name.
func TestRandomDelaysOfAStart(t *testing.T) { delaysOf(t, "") }

func TestRandomDelaysOfAStartOfContainerd17(t *testing.T) { delaysOf(t, "containerd-1.7") }

func delaysOf(t *testing.T, containerd string) {
	times, dice := throw(t)
	s, dir := delayed(t, containerd)
	var places []string
	right := 0
	for range times {
		if len(places) == 0 {
			places = slices.Sorted(maps.Keys(delays))
			dice.Shuffle(len(places), func(a, b int) { places[a], places[b] = places[b], places[a] })
		}
		place, length := places[0], time.Duration(7+dice.IntN(9))*100*time.Millisecond
		places = places[1:]
		says, cause := s.delay(dir, place, length)
		ok := cause == delays[place][0] && regexp.MustCompile(delays[place][1]).MatchString(says)
		if ok {
			right++
		}
		t.Logf("%v %s %s: %s: %s", ok, place, length, cause, says)
	}
	harness.Equal(t, right, times, "delays with the right cause and name")
}

func delayed(t *testing.T, containerd string) (s *scene, dir string) {
	dir = t.TempDir()
	tools := harness.Must(filepath.Abs("../tools/bin"))(t)
	older := filepath.Join(tools, containerd)
	self := harness.Must(os.Executable())(t)
	in := strings.NewReplacer("DIR", dir, "RUNC", filepath.Join(tools, "runc"), "SHIM", filepath.Join(older, "containerd-shim-runc-v2"))
	for name, script := range map[string]string{
		"slow-runc": slowRunc, "containerd-shim-runc-v2": slowShim, "hook-of-prestart": sleepyHook,
		"hook-of-createRuntime": sleepyHook, "hook-of-poststart": sleepyHook,
	} {
		harness.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(in.Replace(script)), 0o755))
	}
	for _, name := range []string{"containerd", "ctr"} {
		harness.Check(t, os.Symlink(filepath.Join(older, name), filepath.Join(dir, name)))
	}
	harness.Check(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	relay := harness.Address(t)
	s = set(t, rig.Options{
		Containerd: dir, OTLP: "http://" + relay, Runc: filepath.Join(dir, "slow-runc"), Env: []string{delaysDir + "=" + dir},
		NRIPlugins: map[string]string{"10-sleeps": self, "20-naps": self, "30-answers": self},
	}, fmt.Sprintf("[slow]\ncall = \"500ms\"\n[sampling]\nper_second = 0\n[relay]\nlisten = %q\n", relay))
	s.network("pods", rig.Bridge(), rig.Test("stopper"))
	s.add(rig.PodOptions{}, false) // makes the folder of network namespaces
	harness.Check(t, os.WriteFile(filepath.Join(dir, "runtime"), fmt.Appendln(nil, s.rig.ContainerdPID()), 0o600))
	return s, dir
}

const sleepyHook = "#!/bin/sh\ncat >/dev/null\nsleep \"$1\"\n"

// delay starts a pod that is delayed at a place.
func (s *scene) delay(dir, place string, length time.Duration) (says, cause string) {
	s.Helper()
	var o rig.PodOptions
	if act, is := strings.CutPrefix(place, "nri "); is {
		o.Annotations = map[string]string{"act": act}
		if act == "hangs" || act == "dies" {
			defer s.acting(act)()
		}
	} else if what, is := strings.CutPrefix(place, "scans "); is {
		defer s.scanned(what, length)()
	} else {
		file := filepath.Join(dir, place)
		harness.Check(s.T, os.WriteFile(file, fmt.Appendf(nil, "%.1f\n", length.Seconds()), 0o600))
		defer os.Remove(file)
	}
	if strings.HasPrefix(place, "stops-") {
		stopped := filepath.Join(dir, "stopped")
		over := make(chan struct{})
		go func() {
			defer close(over)
			harness.Until(s, "the runtime is stopped", func() bool { return os.Remove(stopped) == nil })
			time.Sleep(length) // the fault
			_ = syscall.Kill(s.rig.ContainerdPID(), syscall.SIGCONT)
		}()
		defer func() { <-over }()
	}
	s.add(o, false)
	outer, _ := s.started(fmt.Sprintf("pod-%d", *s.pods))
	return outer.Attrs["cniscope.verdict"], outer.Attrs["cniscope.cause"]
}

// scanned delays the first open of a new network namespace or of a plugin, as on-access scanners do, until the
// returned function ends it.
func (s *scene) scanned(what string, length time.Duration) (end func()) {
	s.Helper()
	where, opens := filepath.Join(s.rig.Dir(), "state", "*", "netns"), uint64(unix.FAN_OPEN_PERM)
	if what == "plugins" {
		where, opens = s.rig.CNIBinDir(), unix.FAN_OPEN_EXEC_PERM
	}
	found := harness.Must(filepath.Glob(where))(s.T)
	harness.Equal(s.T, len(found), 1, "folders", where)
	watch := harness.Must(unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY))(s.T)
	harness.Check(s.T, unix.FanotifyMark(watch, unix.FAN_MARK_ADD, opens|unix.FAN_EVENT_ON_CHILD, unix.AT_FDCWD, found[0]))
	f := os.NewFile(uintptr(watch), "scanner")
	go func() {
		var until time.Time
		for {
			var event unix.FanotifyEventMetadata
			bytes := unsafe.Slice((*byte)(unsafe.Pointer(&event)), unsafe.Sizeof(event))
			if _, err := f.Read(bytes); err != nil {
				return
			}
			if until.IsZero() {
				until = time.Now().Add(length)
			}
			time.Sleep(time.Until(until)) // the fault
			answer := unix.FanotifyResponse{Fd: event.Fd, Response: unix.FAN_ALLOW}
			_, _ = f.Write(unsafe.Slice((*byte)(unsafe.Pointer(&answer)), unsafe.Sizeof(answer)))
			_ = unix.Close(int(event.Fd))
		}
	}()
	return func() { f.Close() }
}
