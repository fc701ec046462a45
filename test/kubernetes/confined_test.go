//go:build linux

package kubernetes

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"github.com/cniscope/cniscope/test/harness"
)

// givenUp are capabilities that cniscope drops at run time; later processes in its container may have them.
var givenUp = []string{"NET_ADMIN"}

// confined checks that a pod's process has exactly these capabilities, cannot gain any, and is filtered.
func (c *cluster) confined(p *pod, names []string) {
	c.Helper()
	var bits, kept uint64
	for _, name := range names {
		value := harness.Must(cap.FromName("cap_" + strings.ToLower(name)))(c)
		bits |= 1 << value
		if !slices.Contains(givenUp, name) {
			kept |= 1 << value
		}
	}
	c.process(c.pid(p), map[string]string{
		"CapEff": fmt.Sprintf("%016x", kept), "CapPrm": fmt.Sprintf("%016x", kept), "CapBnd": fmt.Sprintf("%016x", bits),
		"CapInh": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2",
	})
}

func (c *cluster) process(pid int, fields map[string]string) {
	c.Helper()
	status := harness.Must(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(c)
	for field, want := range fields {
		if !strings.Contains(string(status), "\n"+field+":\t"+want+"\n") {
			c.Errorf("%s of process %d is not %s:\n%s", field, pid, want, status)
		}
	}
}

// container returns the id of a pod's running container; for cniscope's pod, of cniscope.
func (c *cluster) container(p *pod) string {
	c.Helper()
	if c.has(p, "cniscope") {
		return c.containerCalled(p, "cniscope")
	}
	return c.containerCalled(p, "")
}

func (c *cluster) has(p *pod, name string) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(s struct{ Name string }) bool { return s.Name == name })
}

// containerCalled returns a container's id by name; empty selects the only one.
func (c *cluster) containerCalled(p *pod, name string) string {
	c.Helper()
	selector := map[string]string{"io.kubernetes.pod.uid": p.Metadata.UID}
	if name != "" {
		selector["io.kubernetes.container.name"] = name
	}
	list := harness.Must(c.rig.Runtime().ListContainers(c.ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{
		State:         &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING},
		LabelSelector: selector,
	}}))(c)
	if len(list.Containers) != 1 {
		c.Fatalf("pod %s has %d running containers %s", p.Metadata.Name, len(list.Containers), name)
	}
	return list.Containers[0].Id
}

func (c *cluster) pid(p *pod) int {
	c.Helper()
	return c.pidOf(c.container(p))
}

func (c *cluster) pidOf(container string) int {
	c.Helper()
	status, err := c.rig.Runtime().ContainerStatus(c.ctx, &cri.ContainerStatusRequest{ContainerId: container, Verbose: true})
	harness.Check(c, err)
	var info struct{ PID int }
	harness.Check(c, json.Unmarshal([]byte(status.Info["info"]), &info))
	return info.PID
}

// runs is nil while a program with that script name runs.
func (c *cluster) runs(script string) error {
	all, err := c.rig.Processes()
	if err != nil {
		return err
	}
	for _, process := range all {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(process.PID) + "/cmdline")
		if strings.HasSuffix(strings.TrimRight(string(line), "\x00"), "/"+script) {
			return nil
		}
	}
	return fmt.Errorf("%s does not run yet", script)
}
