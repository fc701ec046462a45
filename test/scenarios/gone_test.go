//go:build linux

package scenarios

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// lost are the findings of doctor that name a pod.
func (s *scene) lost(pod string) (found []doctor.Finding) {
	s.Helper()
	out, err := exec.CommandContext(s.ctx, program, "doctor", "--config", s.scope.Config(), "--format", "json").Output()
	var report doctor.Report
	if json.Unmarshal(out, &report) != nil {
		s.Fatalf("%v: %s", err, out)
	}
	for _, f := range report.Findings {
		if f.Check == "living-pods" && strings.Contains(strings.Join(f.Evidence, "\n"), pod) {
			found = append(found, f)
		}
	}
	return found
}

// What an ADD set for a living pod and another process removed is found by doctor while it lasts, and is the cause of
// the late first connection. What the plugin itself took back, or changed, is not.
func TestWhatALivingPodLost(t *testing.T) {
	onAdd := func(body string) []byte {
		return rig.Script(`if [ "$CNI_COMMAND" = ADD ]; then ip=${conf#*'"address":"'}; ip=${ip%%/*}; ` + body + "; fi")
	}
	neighbor := func(state string) []byte {
		return onAdd(`set -- $(ip -o route get $ip); nsenter --net=$CNI_NETNS ip neigh replace 10.99.0.1 lladdr $(cat /sys/class/net/$3/address) nud ` + state + ` dev eth0 || fail 7 no`)
	}
	s := set(t, rig.Options{Plugins: map[string][]byte{
		"router":  onAdd(`ip rule add from $ip lookup 4711; ip route add $ip/32 dev lo table 4711`),
		"undoes":  onAdd(`ip rule add from $ip lookup 4711; ip rule del from $ip lookup 4711; ip route add 10.98.0.0/24 dev lo table 4711; ip route del 10.98.0.0/24 table 4711`),
		"arper":   neighbor("permanent"),
		"learner": neighbor("reachable"),
	}}, "[slow]\nfirst_connection = \"3s\"\n")
	t.Cleanup(func() { _ = exec.Command("ip", "route", "flush", "table", "4711").Run() })
	bridge := rig.Bridge(rig.Conf{"ipMasq": false})
	ptp := func(n rig.Net) rig.Conf { return rig.Conf{"type": "ptp", "ipam": rig.HostLocal(n.DataDir, n.Subnet)} }
	mac := func(ip string) {
		dev := strings.Fields(s.output("ip", "-o", "route", "get", ip))[2]
		s.run("ip", "link", "set", "dev", dev, "address", "02:00:00:00:99:01")
	}
	noRule := func(ip string) { s.run("ip", "rule", "del", "from", ip, "lookup", "4711") }
	flush := func(string) {
		for _, chain := range regexp.MustCompile(`-N (CNI-\S+)`).FindAllStringSubmatch(s.output("iptables", "-t", "nat", "-S"), -1) {
			s.run("iptables", "-t", "nat", "-F", chain[1])
		}
	}
	for i, c := range []struct {
		pod           string
		chain         []rig.Plugin
		act, then     func(ip string)
		says, remedy  string
		cause, absent string
	}{
		{"rule-0", []rig.Plugin{bridge, rig.Test("router")}, noRule, noRule, "rule from %s/32 lookup 4711, which the pod's ADD set, is gone", "ManageForeignRoutingPolicyRules=no", "gone", ""},
		{"route-0", []rig.Plugin{bridge, rig.Test("router")}, func(string) { s.run("ip", "route", "flush", "table", "4711") }, noRule, "route %s/32 table 4711, which the pod's ADD set, is gone", "ManageForeignRoutes=no", "gone", "rule from"},
		{"undone-0", []rig.Plugin{bridge, rig.Test("undoes")}, nil, nil, "", "", "idle", ""},
		{"ports-0", []rig.Plugin{bridge, rig.Portmap()}, flush, nil, "chain CNI-DN-", "FlushAllOnReload=no", "gone", ""},
		{"kept-0", []rig.Plugin{bridge, rig.Portmap()}, nil, nil, "", "", "idle", ""},
		{"mac-0", []rig.Plugin{ptp, rig.Test("arper")}, mac, nil, "the pod's permanent neighbor 10.99.0.1 has the MAC address ", "MACAddressPolicy=none", "neighbor", ""},
		{"learned-0", []rig.Plugin{ptp, rig.Test("learner")}, mac, nil, "", "", "", "permanent"},
	} {
		t.Run(c.pod, func(t *testing.T) {
			s := s.in(t)
			s.network(strings.TrimSuffix(c.pod, "-0"), c.chain...)
			o := rig.PodOptions{Name: c.pod}
			if len(c.chain) > 1 && c.absent == "" {
				o.HostPorts = []rig.HostPort{{Host: int32(28080 + i), Container: 80}}
			}
			id, netns, ip := s.stays(o)
			// The next network has the same range.
			defer func() { harness.Check(t, s.rig.StopPod(s.ctx, id)) }()
			if c.then != nil {
				defer func() { _ = exec.Command("ip", "rule", "del", "from", ip, "lookup", "4711").Run() }()
			}
			s.call(c.pod)
			if found := s.lost(c.pod); len(found) > 0 {
				t.Errorf("before: %+v", found)
			}
			if c.act != nil {
				c.act(ip)
			}
			found := s.lost(c.pod)
			if c.says == "" != (len(found) == 0) {
				t.Fatalf("found %+v", found)
			}
			says := c.says
			if strings.Contains(says, "%s") {
				says = fmt.Sprintf(says, ip)
			}
			if says != "" {
				harness.Says(t, found[0].Summary+found[0].Remedy[0], "shop/"+c.pod, says, c.remedy)
			}
			if i := slices.IndexFunc(found, func(f doctor.Finding) bool { return c.absent != "" && strings.Contains(fmt.Sprint(f), c.absent) }); i >= 0 {
				t.Errorf("it names %s: %+v", c.absent, found[i])
			}
			time.Sleep(5 * time.Second) // the look comes 3 s after the setup
			l := listen(t, netns, ip)
			harness.Check(t, harness.Within(netns, func() error {
				conn, err := net.Dial("tcp", l.Addr().String())
				if err == nil {
					conn.Close()
				}
				return err
			}))
			said := s.logged("came late", c.pod)
			harness.Says(t, said, "cause="+c.cause, says, c.remedy)
			if c.says == "" && strings.Contains(said, "remedy=") {
				t.Error(said)
			}
		})
	}
}

func (s *scene) output(command ...string) string {
	s.Helper()
	out, err := exec.CommandContext(s.ctx, command[0], command[1:]...).Output()
	harness.Check(s.T, err)
	return string(out)
}
