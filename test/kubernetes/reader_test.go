//go:build linux

package kubernetes

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// Pods of two namespaces, shop and bank, are slow. Operators get answers, other users do not.
func TestReader(t *testing.T) {
	c := startWithControllers(t, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test("policy")}}},
		Plugins:  map[string][]byte{"policy": rig.Script(`[ "$CNI_COMMAND" = DEL ] || case "$CNI_ARGS" in *K8S_POD_NAME=broken*) fail 11 "try again later" ;; *) sleep 1 ;; esac`)},
	})
	// Nothing serves the address of the service "kubernetes", on no machine: the sidecar uses the kubelet's API server.
	services := harness.Must(netlink.ParseIPNet("10.96.0.0/16"))(c)
	blocked := &netlink.Route{Dst: services, Type: unix.RTN_UNREACHABLE}
	harness.Check(c, netlink.RouteReplace(blocked))
	t.Cleanup(func() { harness.Check(t, netlink.RouteDel(blocked)) })
	h := c.helm()
	_, err := h.Run(c.ctx, "install", chartRelease, h.Chart, "--namespace", chartNamespace, "--create-namespace",
		"--set", "options.slow.call=500ms,reader.events.enabled=true")
	harness.Check(c, err)
	scope := c.daemonPod(chartNamespace, chartRelease, running)
	c.logged(scope, "observing CNI calls")
	c.logged(scope, "writing Events")
	c.peopleAndRights()

	tenant := func(namespace, name string) object {
		o := c.web(name)
		o["metadata"] = object{"name": name, "namespace": namespace}
		o.At("spec", "containers").([]object)[0]["ports"] = nil
		return o
	}
	broken := c.run(tenant("shop", "broken"), func(*pod) error { return nil })
	c.run(tenant("bank", "web-0"), running)
	web := c.run(tenant("shop", "web-0"), running)
	t.Run("the reason is on the pod", func(t *testing.T) { c.in(t).describes(web) })
	t.Run("the reader has no privilege", func(t *testing.T) { c.in(t).unprivileged(scope) })
	t.Run("root speaks to no Kubernetes API", func(t *testing.T) { c.in(t).apart(scope) })
	t.Run("an operator sees all", func(t *testing.T) { c.in(t).operatorAsks(scope) })
	t.Run("others are told what is missing", func(t *testing.T) { c.in(t).refused(scope) })
	t.Run("a pod that fails again and again has one Event", func(t *testing.T) { c.in(t).series(broken) })
	// Last, because it adds pods to the DaemonSet.
	t.Run("three nodes answer kubectl cniscope", func(t *testing.T) { c.in(t).fleetAnswers(web) })
}

func (c *cluster) peopleAndRights() {
	c.Helper()
	for _, namespace := range []string{"shop", "bank"} {
		c.admin("create", "namespace", namespace)
		harness.Eventually(c, func() error {
			_, err := c.api.Do(c.ctx, "GET", "/api/v1/namespaces/"+namespace+"/serviceaccounts/default", nil)
			return err
		})
	}
	c.admin("create", "rolebinding", "edits", "-n", "shop", "--clusterrole", "edit", "--user", developer)
	c.admin("create", "rolebinding", "operates", "-n", chartNamespace, "--role", chartRelease+"-operator", "--user", operator)
}

func (c *cluster) describes(p *pod) {
	c.Helper()
	var shown string
	harness.Eventually(c, func() error {
		shown = c.kubectl(developer, "", "describe", "pod", p.Metadata.Name, "-n", p.Metadata.Namespace).out
		return harness.Contains(shown, "CNI ADD eth0 took ")
	})
	took := regexp.MustCompile(`CNI ADD eth0 took [1-9]\d*(\.\d+)?s`) // the plugin sleeps for 1 s
	for line := range strings.Lines(shown) {
		// On a slow machine there is also one of the sandbox's start.
		if strings.Contains(line, "CNISlow") && !strings.Contains(line, "  RunPodSandbox took ") {
			c.Log(line)
			if !strings.Contains(line, "Normal") || !took.MatchString(line) || !strings.Contains(line, "sleep") {
				c.Errorf("the Event says %s", line)
			}
		}
	}
}

// series waits for a series of Events, as kubelet retries.
func (c *cluster) series(p *pod) {
	c.Helper()
	harness.Eventually(c, func() error {
		var all struct {
			Items []struct {
				Reason, Type, Note, ReportingController string
				Regarding                               struct{ Name, UID string }
				Series                                  *struct{ Count int }
			}
		}
		if err := c.api.Get(c.ctx, "/apis/events.k8s.io/v1/namespaces/"+p.Metadata.Namespace+"/events", &all); err != nil {
			return err
		}
		found, count := 0, 0
		for _, e := range all.Items {
			if e.ReportingController != "cniscope.dev/reader" || e.Regarding.UID != p.Metadata.UID || e.Reason != "CNIFailed" {
				continue
			}
			if found++; e.Type != "Warning" || !strings.HasPrefix(e.Note, "CNI ADD eth0 failed after ") {
				c.Errorf("the Event is %+v", e)
			}
			if e.Series != nil {
				count = e.Series.Count
			}
		}
		if found != 1 || count < 2 {
			return fmt.Errorf("%d Events, the series counts %d, of\n%+v", found, count, all.Items)
		}
		return nil
	})
}

func (c *cluster) unprivileged(scope *pod) {
	c.Helper()
	none, user := strings.Repeat("0", 16), strings.Repeat("\t60947", 4)[1:]
	c.process(c.pidOf(c.containerCalled(scope, fleet.Container)), map[string]string{
		"CapEff": none, "CapPrm": none, "CapBnd": none, "CapInh": none, "CapAmb": none, "NoNewPrivs": "1", "Seccomp": "2", "Uid": user, "Gid": user,
	})
}

// apart checks that only the sidecar has connections to the API server.
func (c *cluster) apart(scope *pod) {
	c.Helper()
	_, port, err := net.SplitHostPort(c.server)
	harness.Check(c, err)
	harness.Eventually(c, func() error { // it writes Events
		if n := connections(c, c.pidOf(c.containerCalled(scope, fleet.Container)), port); n == 0 {
			return fmt.Errorf("the reader has no connection to the API server: this test looks at the wrong thing")
		}
		return nil
	})
	harness.Equal(c, connections(c, c.pid(scope), port), 0, "cniscope connections to the API server")
	if c.tokenIn(c.pid(scope)) || !c.tokenIn(c.pidOf(c.containerCalled(scope, fleet.Container))) {
		c.Error("cniscope has a token, or the reader has none")
	}
}

func (c *cluster) tokenIn(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d/root/var/run/secrets/kubernetes.io/serviceaccount/token", pid))
	return err == nil
}

type answer struct {
	Operations []struct{ Namespace, Pod, Result, Cause, Verdict string }
}

func (c *cluster) answered(s said) (a answer) {
	c.Helper()
	if s.code != 0 {
		c.Fatalf("ask ended with %d: %s", s.code, s.err)
	}
	harness.Check(c, json.Unmarshal([]byte(s.out), &a))
	return a
}

func (c *cluster) operatorAsks(scope *pod) {
	c.Helper()
	of := map[string]bool{}
	for _, o := range c.answered(c.ask(operator, scope, "operations")).Operations {
		of[o.Namespace] = true
	}
	if !of["shop"] || !of["bank"] {
		c.Errorf("an operator sees the namespaces %v", of)
	}
	if s := c.ask(operator, scope, "node"); s.code != 0 || !strings.Contains(s.out, "attached") {
		c.Errorf("ask node ended with %d: %s%s", s.code, s.out, s.err)
	}
	if s := c.ask(operator, scope, "doctor"); s.code != 0 {
		c.Errorf("ask doctor ended with %d: %s", s.code, s.err)
	}
}

func (c *cluster) refused(scope *pod) {
	c.Helper()
	for _, person := range []string{developer, somebody} {
		if s := c.ask(person, scope, "calls"); s.code == 0 || !strings.Contains(s.err, `in the namespace "`+chartNamespace+`"`) {
			c.Errorf("%s may exec, or is not told what is missing: %s", person, s.err)
		}
	}
}
