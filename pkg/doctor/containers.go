package doctor

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// maxContainers bounds how many are asked about: 250 pods of four containers.
	maxContainers = 1000
	// asking is how many questions are asked at a time.
	asking = 8
)

// restartCount is kubelet's annotation.
const restartCount = "io.kubernetes.container.restartCount"

// askContainers asks for the latest attempt of every container.
func askContainers(ctx context.Context, runtime cri.RuntimeServiceClient) ([]Container, error) {
	sandboxes, err := runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return nil, err
	}
	pods := map[string]*cri.PodSandbox{}
	for _, s := range sandboxes.GetItems() {
		pods[s.GetId()] = s
	}
	answer, err := runtime.ListContainers(ctx, &cri.ListContainersRequest{})
	if err != nil {
		return nil, err
	}
	all := latest(answer.GetContainers())
	found := make([]Container, len(all))
	var wg sync.WaitGroup
	slots := make(chan struct{}, asking)
	for i, c := range all {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			status, err := runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: c.GetId()})
			if err != nil {
				return // it has gone meanwhile
			}
			k := containerOf(pods[c.GetPodSandboxId()], status.GetStatus())
			k.hostNet = k.known() && onHostNetwork(ctx, runtime, c.GetPodSandboxId())
			found[i] = k
		})
	}
	wg.Wait()
	return slices.DeleteFunc(found, func(c Container) bool { return c.ID == "" }), ctx.Err()
}

// known tells whether a container goes by the name of one that has to do with the network.
func (c Container) known() bool {
	return c.Name == "kube-proxy" || ownerOfPod(c.Pod) != "" || slices.Contains(agentNames(), c.Name)
}

// onHostNetwork tells whether a pod has the node's network. Those that matter do, and not
// everybody who can choose a name may have it.
func onHostNetwork(ctx context.Context, runtime cri.RuntimeServiceClient, sandbox string) bool {
	status, err := runtime.PodSandboxStatus(ctx, &cri.PodSandboxStatusRequest{PodSandboxId: sandbox})
	return err == nil && status.GetStatus().GetLinux().GetNamespaces().GetOptions().GetNetwork() == cri.NamespaceMode_NODE
}

// latest keeps, of each container of each pod, the one that was made last.
func latest(all []*cri.Container) (kept []*cri.Container) {
	slices.SortFunc(all, func(a, b *cri.Container) int { return int(min(1, max(-1, b.GetCreatedAt()-a.GetCreatedAt()))) })
	seen := map[[2]string]bool{}
	for _, c := range all {
		key := [2]string{c.GetPodSandboxId(), c.GetMetadata().GetName()}
		if !seen[key] && len(kept) < maxContainers {
			seen[key] = true
			kept = append(kept, c)
		}
	}
	return kept
}

func containerOf(pod *cri.PodSandbox, s *cri.ContainerStatus) Container {
	restarts, err := strconv.Atoi(s.GetAnnotations()[restartCount])
	if err != nil {
		restarts = int(s.GetMetadata().GetAttempt())
	}
	k := Container{
		Namespace: clean(pod.GetMetadata().GetNamespace()), Pod: clean(pod.GetMetadata().GetName()),
		SandboxReady: pod != nil && pod.GetState() == cri.PodSandboxState_SANDBOX_READY,
		Name:         clean(s.GetMetadata().GetName()), ID: clean(s.GetId()),
		State:    strings.ToLower(strings.TrimPrefix(s.GetState().String(), "CONTAINER_")),
		ExitCode: s.GetExitCode(), Reason: clean(s.GetReason()), Restarts: restarts,
		Created: time.Unix(0, s.GetCreatedAt()), logPath: s.GetLogPath(),
	}
	if s.GetStartedAt() > 0 {
		k.Started = time.Unix(0, s.GetStartedAt())
	}
	if s.GetFinishedAt() > 0 {
		k.Finished = time.Unix(0, s.GetFinishedAt())
	}
	for _, m := range s.GetMounts() {
		k.mounts = append(k.mounts, mount{host: m.GetHostPath(), container: m.GetContainerPath(), readOnly: m.GetReadonly()})
	}
	return k
}

// ofNetwork keeps the containers that have to do with the node's network, and reads what
// only they are read for.
func ofNetwork(all []Container, dirs []string) (kept []Container) {
	for _, c := range all {
		for _, m := range c.mounts {
			if !m.readOnly && slices.ContainsFunc(dirs, func(dir string) bool { return covers(m.host, dir) }) {
				c.Mounts = append(c.Mounts, m.host)
			}
		}
		if c.hostNet {
			c.Proxy, c.Owner = c.Name == "kube-proxy", ownerOfPod(c.Pod)
		}
		if !c.writes() && !c.hostNet {
			continue
		}
		c.LastLine = lastLine(c.logPath)
		if c.Name == "cilium-agent" {
			c.Settings = mountedSettings(c.mounts)
		}
		kept = append(kept, c)
	}
	return kept
}

// writes tells whether a container has its part in writing the CNI folders.
func (c Container) writes() bool { return len(c.Mounts) > 0 || c.Owner != "" }

// covers tells whether a mounted folder is, or is just above, one of CNI's: whole disks
// are mounted by many that have nothing to do with it.
func covers(host, dir string) bool {
	host, dir = filepath.Clean(host), filepath.Clean(dir)
	return host == dir || host == filepath.Dir(dir) && strings.Contains(filepath.Base(host), "cni")
}
