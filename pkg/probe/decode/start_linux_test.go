package decode

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
)

type starter struct {
	*testing.T
	d    *Decoder
	says []string
}

func (s *starter) runs(tgid, parent uint32, flags kernel.LifeFlag, stdin uint64, args ...string) *starter {
	raw := encode(kernel.LifeFlagFLAG_START|flags, "/opt/bin/"+args[0], args, nil)
	w := (*kernel.LifeExecEvent)(unsafe.Pointer(unsafe.SliceData(append(raw, make([]byte, unsafe.Sizeof(kernel.LifeExecEvent{}))...))))
	w.H.Task.Tgid, w.Parent.Tgid, w.Parent.Start, w.StdinIno = tgid, parent, 900, stdin
	return s.takes(unsafe.Slice((*byte)(unsafe.Pointer(w)), len(raw)))
}

func (s *starter) exits(tgid uint32, code int32) *starter {
	var w kernel.LifeExitEvent
	w.H.Kind, w.H.Flags, w.H.Time = uint8(kernel.LifeKindKIND_EXIT), uint8(kernel.LifeFlagFLAG_START), 2000
	w.H.Task.Tgid, w.H.Task.Start, w.Status = tgid, 900, code<<8
	return s.takes(bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&w)), unsafe.Sizeof(w))))
}

func (s *starter) takes(raw []byte) *starter {
	s.Helper()
	for _, e := range harness.Must(s.d.Events(raw))(s.T) {
		b := e.Body.(*event.Step)
		says := fmt.Sprintf("%s %s %s %s", b.SandboxID, b.Kind, b.Name, b.Verb)
		if b.Systemd {
			says += " systemd"
		}
		if b.Code != 0 {
			says += fmt.Sprintf(" exited %d", b.Code)
		}
		s.says = append(s.says, strings.TrimSpace(says))
	}
	return s
}

func TestProgramsOfASandboxStart(t *testing.T) {
	s := &starter{T: t, d: newDecoder()}
	s.runs(10, 1, kernel.LifeFlagFLAG_ROOT, 0, "shim", "-namespace", "k8s.io", "-id", "c1", "start").
		runs(11, 10, 0, 0, "shim", "-id", "c1").exits(10, 0).
		runs(18, 11, 0, 0, "exe", "UserNamespace").exits(18, 9).
		runs(12, 11, 0, 0, "runc", "--root", "/run", "--systemd-cgroup", "create", "--bundle", "b", "c1").
		runs(13, 12, 0, 0, "runc", "init").
		runs(14, 12, 0, 77, "nvidia-hook", "secret").exits(14, 3).
		runs(15, 13, 0, 78, "cdi-hook").exits(13, 0).exits(15, 0).
		runs(16, 12, 0, 0, "newuidmap").exits(16, 0).
		exits(12, 0).
		runs(17, 11, 0, 0, "wrapper", "start", "c1").runs(17, 11, 0, 0, "runc", "start", "c1").exits(17, 0)
	want := []string{
		"c1 shim shim", "c1 command exe  exited 9", "c1 hook nvidia-hook  exited 3", "c1 hook cdi-hook", "c1 command newuidmap",
		"c1 oci_runtime runc create systemd", "c1 oci_runtime wrapper start",
	}
	harness.EqualSlices(t, s.says, want, "steps")
	harness.Equal(t, len(s.d.steps), 0, "programs kept after the start")
}

func TestProgramsOfAStartThatFailedAreNotKept(t *testing.T) {
	s := &starter{T: t, d: newDecoder()}
	s.runs(10, 1, kernel.LifeFlagFLAG_ROOT, 0, "shim", "-id", "c1").runs(11, 10, 0, 0, "shim").exits(10, 0).
		runs(12, 11, 0, 0, "runc", "create").exits(12, 1).exits(11, 0)
	harness.EqualSlices(t, s.says, []string{"c1 shim shim", "c1 oci_runtime runc create exited 1"}, "steps")
	harness.Equal(t, len(s.d.steps), 0, "programs kept")
	s.runs(20, 19, 0, 0, "runc", "create").exits(20, 0) // its parent's record was lost
	harness.Equal(t, len(s.says), 2, "steps of unknown processes")
}
