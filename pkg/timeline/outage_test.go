package timeline

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func TestTheNetworkIsNotReady(t *testing.T) {
	pods := event.Network{
		Name: "pods", File: "10-pods.conflist",
		Plugins: []event.Plugin{{Type: "bridge"}, {Type: "portmap"}},
	}
	s := tell(t)
	s.at(5, &event.Readiness{Ready: true})
	harness.Equal(t, len(s.line.Pods().Outages()), 0, "outages before there was one")
	none := &event.Readiness{
		Reason: "cni plugin not initialized", Lacks: event.LackConfiguration,
		Missing: "nobody wrote a network",
	}
	s.at(10, none).at(15, none).at(20, &event.Networks{Networks: []event.Network{pods, {Name: "tenant", File: "20-vlan.conf"}}})
	s.at(25, &event.Readiness{Reason: "cni plugin not initialized"}).at(30, &event.Readiness{
		Reason: "STATUS says no", Lacks: event.LackStatus, Missing: "the agent says no", Overdue: true,
	}).at(35, &event.Readiness{Reason: "STATUS says no"})
	harness.Equal(t, len(s.line.Pods().Outages()), 0, "outages before the first has ended")
	s.at(40, &event.Readiness{Ready: true})
	over := s.line.Pods().Outages()
	if len(over) != 1 || len(s.line.Pods().Outages()) != 0 {
		t.Fatalf("%d outages", len(over))
	}
	o := over[0]
	got := fmt.Sprint(o.Start/ms, "-", o.End/ms)
	for _, said := range append(o.Reasons, o.Folder...) {
		got += fmt.Sprintf("; %d %s", said.At/ms, said.Text)
	}
	for _, lack := range o.Lacks {
		got += fmt.Sprintf("; %d %s %s", lack.At/ms, lack.What, lack.Text)
	}
	if !o.Overdue {
		t.Error("that it took too long is forgotten")
	}
	const want = "10-40; 10 cni plugin not initialized; 30 STATUS says no; 10 no network; 20 10-pods.conflist (pods: bridge portmap); 20-vlan.conf (tenant:)" +
		"; 10 cni_configuration nobody wrote a network; 30 cni_status the agent says no"
	harness.Equal(t, got, want)
}
