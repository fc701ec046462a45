//go:build linux

package scenarios

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// fuseDir is a file system served by this program; a plugin binds a part of it to bound.
const (
	fuseDir = "/run/cniscope-scenario/fuse"
	bound   = "/run/cniscope-scenario/bound"
)

// bind mounts one path at another, which does not exist at first.
func bind(source string) func() error {
	return func() error {
		if err := os.MkdirAll(bound, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(source+"/nothing", bound, "", unix.MS_BIND, ""); !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("what is not there could be bound: %w", err)
		}
		if err := unix.Mount(source+"/data", bound, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		return unix.Unmount(bound, unix.MNT_DETACH)
	}
}

func TestAMountThatBlocks(t *testing.T) {
	harness.Root(t)
	harness.Check(t, os.MkdirAll(filepath.Join(fuseDir+"-control", "data"), 0o755))
	// The paths are fixed, so rigs take turns.
	t.Cleanup(hold(t, filepath.Join(filepath.Dir(fuseDir), "lock")))
	serveSlowly(t, 2*time.Second) // before the rig's own mounts
	s := set(t, rig.Options{}, slowly)
	s.record()

	s.network("mount-control", rig.Bridge(), rig.Test("quickbinder"))
	control := s.add(rig.PodOptions{}, false)
	if strings.Contains(control.Attrs["cniscope.verdict"], "mount of") {
		t.Errorf("the control has it, too: %s", control.Attrs["cniscope.verdict"])
	}
	if failed := control.Below("mount"); len(failed) == 0 || failed[0].Attrs["cniscope.errno"] != "ENOENT" ||
		failed[0].Attrs["cniscope.mount.source"] != fuseDir+"-control/nothing" {
		t.Errorf("a mount that failed at once: %+v", failed)
	}

	s.network("mount", rig.Bridge(), rig.Test("binder"))
	call := s.add(rig.PodOptions{}, false)
	t.Logf("%.0f ms: %s (%s)", call.Took(), call.Attrs["cniscope.verdict"], call.Attrs["cniscope.remedy"])
	says := regexp.MustCompile(`^2\S*s of \S+ binder waited for mount of ` + bound + ` \(bind, from ` + fuseDir + `/data\)( \(\d times\))?`)
	if call.Attrs["cniscope.cause"] != "mount" || !says.MatchString(call.Attrs["cniscope.verdict"]) {
		t.Errorf("%s: %q, want %s", call.Attrs["cniscope.cause"], call.Attrs["cniscope.verdict"], says)
	}
	for _, x := range call.Below("mount") {
		if x.Attrs["cniscope.mount.target"] == bound && x.Attrs["cniscope.mount.source"] == fuseDir+"/data" && x.Took() >= 2000 {
			return
		}
	}
	t.Errorf("no span of a mount of two seconds: %+v", call.Below("mount"))
}

// serveSlowly mounts a FUSE file system in which a lookup of "data" lasts after (include/uapi/linux/fuse.h).
func serveSlowly(t *testing.T, after time.Duration) {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no FUSE: %v", err)
	}
	_ = unix.Unmount(fuseDir, unix.MNT_DETACH) // left by a killed test
	harness.Check(t, os.MkdirAll(fuseDir, 0o755))
	harness.Check(t, unix.Mount("slow", fuseDir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd)))
	device := os.NewFile(uintptr(fd), "/dev/fuse") // pollable from now on
	served := make(chan struct{})
	go func() {
		defer close(served)
		serve(device, after)
	}()
	t.Cleanup(func() {
		_ = device.Close() // fails pending requests
		<-served
		harness.Check(t, unix.Unmount(fuseDir, unix.MNT_DETACH))
	})
}

// serve answers until the device is closed.
func serve(device *os.File, after time.Duration) {
	const (
		lookup, forget, getattr, initialise, batchForget = 1, 2, 3, 26, 42
		folder, enosys, enoent                           = unix.S_IFDIR | 0o755, -int32(unix.ENOSYS), -int32(unix.ENOENT)
	)
	le := binary.NativeEndian
	attr := func(b []byte, ino uint64) []byte { // struct fuse_attr
		b = append(le.AppendUint64(b, ino), make([]byte, 52)...)
		b = le.AppendUint32(b, folder)
		return append(le.AppendUint32(b, 2), make([]byte, 20)...)
	}
	request := make([]byte, 1<<17)
	for {
		n, err := device.Read(request)
		if errors.Is(err, unix.ENOENT) { // the requester exited
			continue
		}
		if err != nil || n < 40 {
			return
		}
		unique, node, body, failed := le.Uint64(request[8:]), le.Uint64(request[16:]), []byte(nil), int32(0)
		switch le.Uint32(request[4:]) {
		case initialise:
			body = le.AppendUint32(le.AppendUint32(nil, 7), 23)
			body = append(body, make([]byte, 56)...)
		case getattr:
			body = attr(make([]byte, 16), node)
		case lookup:
			if name := string(request[40:n]); name != "data\x00" {
				failed = enoent
				break
			}
			time.Sleep(after) // the intended delay
			body = attr(append(le.AppendUint64(nil, 2), make([]byte, 32)...), 2)
		case forget, batchForget:
			continue
		default:
			failed = enosys
		}
		answer := le.AppendUint32(nil, uint32(16+len(body)))
		answer = le.AppendUint64(le.AppendUint32(answer, uint32(failed)), unique)
		_, _ = device.Write(append(answer, body...))
	}
}
