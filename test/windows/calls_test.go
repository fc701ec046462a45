//go:build linux

package windows

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// behaves is a plugin with other behavior for some pods.
const behaves = `{"cniVersion":"1.0.0","name":"antrea","plugins":[{"type":"antrea","powershell":true,"pods":{
	"fails":{"hang":"1s","fail":"no uplink"},"exits":{"hang":"1s","exit":-1073741819},"hangs":{"hang":"6s"}}}]}`

func TestCallsThatFailOrHangOrAreMany(t *testing.T) {
	n := newNode(t, behaves)
	endpoint, spans := n.backend()
	n.containerd(endpoint)
	n.cniscope(endpoint, "[slow]\nhung = \"2s\"\n[sampling]\nper_second = 0\n")

	t.Run("an error that the plugin answers", func(t *testing.T) {
		n.pods("fails")
		calls, _ := below(t, spans, "fails", "CNI ADD")
		has(t, calls[0].about, map[string]string{"error.type": "1", "cniscope.failed_plugin": "antrea"})
		harness.Equal(t, calls[0].Status.GetCode().String(), "STATUS_CODE_ERROR", "its status", calls[0].Status)
	})
	t.Run("an exit code, and no word", func(t *testing.T) {
		n.pods("exits")
		runs, _ := below(t, spans, "exits", "antrea ADD")
		has(t, runs[0].about, map[string]string{"process.exit.code": "3221225477"})
	})
	t.Run("a call that hangs", func(t *testing.T) {
		n.pods("hangs")
		below(t, spans, "hangs", "CNI ADD hung")
		calls, _ := below(t, spans, "hangs", "CNI ADD")
		has(t, calls[0].about, map[string]string{"cniscope.hung": "true"})
	})
	t.Run("8 pods at once", func(t *testing.T) {
		var names []string
		for i := range 8 {
			names = append(names, fmt.Sprint("pod-", i))
		}
		n.pods(names...)
		traces := map[string]bool{}
		for _, name := range names {
			for _, span := range []string{"CNI ADD", "antrea ADD", "powershell"} {
				found, _ := below(t, spans, name, span)
				traces[hex.EncodeToString(found[0].TraceId)] = true
				harness.Equal(t, len(found), 1, "times", span, name)
			}
		}
		if len(traces) != len(names) {
			t.Errorf("%d traces of %d pods", len(traces), len(names))
		}
	})
}
