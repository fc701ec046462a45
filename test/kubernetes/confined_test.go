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

// givenUp are the capabilities that cniscope does without once it runs: what is run in its container
// later may have them.
var givenUp = []string{"NET_ADMIN"}

// confined checks on the process itself that a pod has the capabilities named and no
// others, can gain none, and is filtered.
func (c *cluster) confined(p *pod, names []string) {
	c.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid(p)))
	harness.Check(c, err)
	var bits, kept uint64
	for _, name := range names {
		value, err := cap.FromName("cap_" + strings.ToLower(name))
		harness.Check(c, err)
		bits |= 1 << value
		if !slices.Contains(givenUp, name) {
			kept |= 1 << value
		}
	}
	for field, want := range map[string]string{
		"CapEff": fmt.Sprintf("%016x", kept), "CapPrm": fmt.Sprintf("%016x", kept), "CapBnd": fmt.Sprintf("%016x", bits),
		"CapInh": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2",
	} {
		if !strings.Contains(string(status), "\n"+field+":\t"+want+"\n") {
			c.Errorf("%s of cniscope is not %s:\n%s", field, want, status)
		}
	}
}

// container is the id of a pod's running container.
func (c *cluster) container(p *pod) string {
	c.Helper()
	list, err := c.rig.Runtime().ListContainers(c.ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{
		State:         &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING},
		LabelSelector: map[string]string{"io.kubernetes.pod.uid": p.Metadata.UID},
	}})
	harness.Check(c, err)
	if len(list.Containers) != 1 {
		c.Fatalf("pod %s has %d running containers", p.Metadata.Name, len(list.Containers))
	}
	return list.Containers[0].Id
}

// pid is the process of a pod's container.
func (c *cluster) pid(p *pod) int {
	c.Helper()
	status, err := c.rig.Runtime().ContainerStatus(c.ctx, &cri.ContainerStatusRequest{ContainerId: c.container(p), Verbose: true})
	harness.Check(c, err)
	var info struct{ PID int }
	harness.Check(c, json.Unmarshal([]byte(status.Info["info"]), &info))
	return info.PID
}

// runs is nil while a program of the rig runs whose script has the name given.
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
