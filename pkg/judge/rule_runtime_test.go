package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestRuntimeGap(t *testing.T) {
	rulings(t, map[string]ruling{
		"nothing ran between two plugins": {op: add(plugin("p", 0, 50), plugin("q", 450, 500)), cause: CauseRuntime, says: `^400ms of 500ms: the runtime ran no plugin$`},
		"control: they did":               {op: add(with(plugin("p", 0, 250), cpu(250)), plugin("q", 251, 300)), cause: CausePlugin},
	})
}

func TestANetworkThatTheRuntimeRemoved(t *testing.T) {
	removed := func(c *model.Call) { c.Undone = c.End + 40*ms }
	rulings(t, map[string]ruling{
		"after every plugin succeeded": {
			op: but(add(plugin("bridge", 0, 60)), removed), cause: CauseRuntime,
			says:   `^every plugin succeeded, but the runtime removed the network 40ms later, before the sandbox ran$`,
			remedy: `^run kubectl describe pod, or journalctl -u containerd`,
		},
		"after a plugin failed": {
			op:    but(add(with(plugin("bridge", 0, 60), func(im *model.Image) { im.Code = 1 })), removed),
			cause: CauseFailed, says: `^plugin bridge exited 1$`,
		},
	})
}

// Without another NRI plugin, the runtime itself was late.
func TestALateReportOfNRI(t *testing.T) {
	plugins := []event.Actor{{PID: 7, Name: "sleeper"}}
	for name, test := range map[string]struct {
		sandbox      event.Sandbox
		says, remedy string
	}{
		"in time":        {event.Sandbox{Plugins: plugins}, "", ""},
		"another plugin": {event.Sandbox{Late: int64(2 * time.Second), Plugins: plugins}, "NRI reported the sandbox 2s after its process began: the runtime waits for each NRI plugin in turn, and also calls sleeper (pid 7)", "read what sleeper (pid 7) logged"},
		"no other":       {event.Sandbox{Late: int64(2 * time.Second)}, "NRI reported the sandbox 2s after its process began", CauseRuntime.remedy()},
	} {
		v := Late(&test.sandbox)
		if test.says == "" {
			if v != nil {
				t.Errorf("%s: %+v", name, v)
			}
			continue
		}
		plain(t, v.Remedy)
		if v.Says != test.says || !strings.HasPrefix(v.Remedy, test.remedy) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
