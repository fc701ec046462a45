//go:build linux

package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// waiter is a first plugin that writes its pod's namespace and waits for a listener.
func waiter(says, goes string) []byte {
	return rig.Script(fmt.Sprintf(`
[ "$CNI_COMMAND" = ADD ] || exit 0
echo "$CNI_NETNS" >%q
read -r go <%q
echo '{"cniVersion":"1.0.0"}'
exit 0
`, says, goes))
}

// Each change that the kernel announces with a requester (socket and sequence) must be in the trace. For links and
// IPv6 addresses it names no requester (6.18), so they are found by content.
func TestEveryChangeTheKernelAnnouncesWasSeenBeingAskedFor(t *testing.T) {
	s := setJaeger(t)
	dir := t.TempDir()
	says, goes, recording := filepath.Join(dir, "says"), filepath.Join(dir, "goes"), filepath.Join(dir, "it.rec")
	harness.Check(t, errors.Join(syscall.Mkfifo(says, 0o600), syscall.Mkfifo(goes, 0o600)))
	s.startRig(rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{
			rig.Test("waiter"), rig.DualStack(), rig.Portmap(), rig.Firewall(),
			rig.Tuning(map[string]string{"net.core.somaxconn": "500"}),
		}}},
		Plugins: map[string][]byte{"waiter": waiter(says, goes)},
	})
	s.startScope(scope.Options{Args: []string{"record", recording}})
	host, err := listen("host", "/proc/thread-self/ns/net") // the main thread may be in another namespace
	harness.Check(t, err)
	defer host.close()
	listening := make(chan *listener, 1)
	go func() {
		path, err := os.ReadFile(says) // until the plugin has written it
		var l *listener
		if err == nil {
			l, err = listen("pod", strings.TrimSpace(string(path)))
		}
		if err != nil {
			t.Error(err)
		}
		listening <- l
		if err := os.WriteFile(goes, []byte("go\n"), 0); err != nil {
			t.Error(err)
		}
	}()
	id := s.pod(rig.PodOptions{Name: "web", HostPorts: []rig.HostPort{{Host: 18480, Container: 80}}})
	pod := <-listening
	if pod == nil {
		return
	}
	defer pod.close()
	harness.Check(t, s.rig.StopPod(s.ctx, id))
	harness.Check(t, s.rig.RemovePod(s.ctx, id))
	harness.Check(t, s.scope.Stop())

	notices, err := pod.all()
	harness.Check(t, err)
	others, err := host.all()
	harness.Check(t, err)
	notices = append(notices, about(others, s.rig.Networks()[0].Bridge)...)
	drawn := filepath.Join(dir, "it.jsonl")
	harness.Check(t, os.WriteFile(drawn, []byte(s.run("show", recording, "--format", "json")), 0o600))
	requests := changes(spansIn(t, drawn))
	matched, kernels := map[string]int{}, []string{}
	for _, n := range notices {
		i := slices.IndexFunc(requests, func(q *event.Request) bool {
			if n.pid == 0 { // without a requester
				return n.by(q)
			}
			return q.Port == n.pid && n.seq-q.Sequence < uint32(max(1, q.Count))
		})
		switch {
		case i >= 0 && n.by(requests[i]):
			t.Logf("%-13s %s", requests[i].Name, n)
			matched[n.where+" "+n.name()]++
		case i >= 0:
			t.Errorf("something else was asked for: %s\nby %+v", n, *requests[i])
		case n.pid != 0:
			t.Errorf("nobody was seen asking for it: %s", n)
		default:
			kernels = append(kernels, n.String())
		}
	}
	t.Logf("by the kernel itself:\n%s", strings.Join(kernels, "\n"))
	for _, what := range []string{
		"pod RTM_NEWLINK", "pod RTM_NEWADDR", "pod RTM_NEWROUTE", "pod RTM_DELLINK",
		"host RTM_NEWLINK", "host RTM_NEWADDR",
	} {
		if matched[what] == 0 {
			t.Errorf("nothing of %s was announced; is anybody listening?", what)
		}
	}
}

func changes(all []*span) (found []*event.Request) {
	add := func(name string, of map[string]*commonpb.AnyValue) {
		if !strings.HasPrefix(name, "netlink RTM_") {
			return
		}
		text := func(key string) string { return of[key].GetStringValue() }
		number := func(key string) uint32 { return uint32(of[key].GetIntValue()) }
		ns := func(key string) event.Namespace { return event.Namespace{Label: text(key)} }
		found = append(found, &event.Request{
			Name: text("cniscope.request.name"), Count: int(number("cniscope.request.count")),
			Port: number("cniscope.request.port"), Sequence: number("cniscope.request.sequence"), NetNS: ns("cniscope.netns_inode"),
			Address: text("cniscope.address"), Route: text("cniscope.route"), Gateway: text("cniscope.gateway"),
			Interface: event.Interface{
				Index: number("cniscope.interface.index"), Name: text("network.interface.name"),
				Peer: text("cniscope.interface.peer"), PeerNetNS: ns("cniscope.interface.peer_netns_inode"),
				NetNS: ns("cniscope.interface.netns_inode"),
			},
		})
	}
	for _, x := range all {
		add(x.Name, x.attrs)
		for _, e := range x.Events {
			add(e.Name, attributes(e.Attributes))
		}
	}
	return found
}

// by reports whether a request caused the notice.
func (n notice) by(q *event.Request) bool {
	i, here := q.Interface, q.NetNS.Label == n.ns
	if n.object() != "LINK" {
		same := q.Name == n.name() && here && (i.Index == n.index || i.Index == 0) && q.Address == n.address
		return same && (n.object() != "ROUTE" || q.Route == n.route && q.Gateway == n.gateway)
	}
	if !strings.HasSuffix(q.Name, "LINK") || strings.Contains(q.Name, "DEL") != strings.Contains(n.name(), "DEL") {
		return false
	}
	// Both ends of a pair are announced in their namespaces.
	switch {
	case i.Index == 0:
		return i.Name == n.called && cmp.Or(i.NetNS, q.NetNS).Label == n.ns || i.Peer == n.called && cmp.Or(i.PeerNetNS, q.NetNS).Label == n.ns
	case here:
		return i.Index == n.index
	}
	return i.Index == n.link
}
