package gather

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

const (
	maxContainers = 1000 // 250 pods of four containers
	asking        = 8    // concurrent requests
)

const restartCount = "io.kubernetes.container.restartCount"

type candidate struct {
	fact.Container
	mounts  []*cri.Mount
	logPath string
	hostNet bool
}

func askCandidates(ctx context.Context, runtime cri.RuntimeServiceClient) ([]candidate, error) {
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
	found := make([]candidate, len(all))
	var group errgroup.Group
	group.SetLimit(asking)
	for i, c := range all {
		group.Go(func() error {
			status, err := runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: c.GetId()})
			if err != nil {
				return nil //nolint:nilerr // it is gone
			}
			k := containerOf(pods[c.GetPodSandboxId()], status.GetStatus())
			k.hostNet = known(k.Container) && onHostNetwork(ctx, runtime, c.GetPodSandboxId())
			found[i] = k
			return nil
		})
	}
	_ = group.Wait() // no error is returned
	return slices.DeleteFunc(found, func(c candidate) bool { return c.ID == "" }), ctx.Err()
}

func known(c fact.Container) bool {
	return c.Name == "kube-proxy" || fact.OwnerOfPod(c.Pod) != "" || slices.Contains(fact.AgentNames(), c.Name)
}

// onHostNetwork reports whether a pod has the node's network, as relevant pods do. A name proves nothing.
func onHostNetwork(ctx context.Context, runtime cri.RuntimeServiceClient, sandbox string) bool {
	status, err := runtime.PodSandboxStatus(ctx, &cri.PodSandboxStatusRequest{PodSandboxId: sandbox})
	return err == nil && status.GetStatus().GetLinux().GetNamespaces().GetOptions().GetNetwork() == cri.NamespaceMode_NODE
}

func latest(all []*cri.Container) (kept []*cri.Container) {
	slices.SortFunc(all, func(a, b *cri.Container) int { return cmp.Compare(b.GetCreatedAt(), a.GetCreatedAt()) })
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

func containerOf(pod *cri.PodSandbox, s *cri.ContainerStatus) candidate {
	restarts, err := strconv.Atoi(s.GetAnnotations()[restartCount])
	if err != nil {
		restarts = int(s.GetMetadata().GetAttempt())
	}
	k := candidate{logPath: s.GetLogPath(), mounts: s.GetMounts(), Container: fact.Container{
		Namespace: fact.Clean(pod.GetMetadata().GetNamespace()), Pod: fact.Clean(pod.GetMetadata().GetName()),
		SandboxReady: pod != nil && pod.GetState() == cri.PodSandboxState_SANDBOX_READY,
		Name:         fact.Clean(s.GetMetadata().GetName()), ID: fact.Clean(s.GetId()),
		State:    strings.ToLower(strings.TrimPrefix(s.GetState().String(), "CONTAINER_")),
		ExitCode: s.GetExitCode(), Reason: fact.Clean(s.GetReason()), Restarts: restarts,
		Created: time.Unix(0, s.GetCreatedAt()),
	}}
	if s.GetStartedAt() > 0 {
		k.Started = time.Unix(0, s.GetStartedAt())
	}
	if s.GetFinishedAt() > 0 {
		k.Finished = time.Unix(0, s.GetFinishedAt())
	}
	return k
}

func ofNetwork(all []candidate, dirs []string) (kept []fact.Container) {
	for _, c := range all {
		for _, m := range c.mounts {
			host := m.GetHostPath()
			if !m.GetReadonly() && slices.ContainsFunc(dirs, func(dir string) bool { return covers(host, dir) }) {
				c.Mounts = append(c.Mounts, host)
			}
		}
		if c.hostNet {
			c.Proxy, c.Owner = c.Name == "kube-proxy", fact.OwnerOfPod(c.Pod)
		}
		if !c.Writes() && !c.hostNet {
			continue
		}
		c.readLog()
		if c.Name == "cilium-agent" {
			c.Settings = mountedSettings(c.mounts)
		}
		kept = append(kept, c.Container)
	}
	return kept
}

func (c *candidate) readLog() {
	c.LastLine = lastLine(c.logPath)
	if n, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(c.logPath), ".log")); err == nil && n > 0 {
		c.LineBefore = lastLine(filepath.Join(filepath.Dir(c.logPath), strconv.Itoa(n-1)+".log"))
	}
}

// covers accepts dir or its CNI parent, but nothing above: many containers mount whole disks.
func covers(host, dir string) bool {
	host, dir = filepath.Clean(host), filepath.Clean(dir)
	return host == dir || host == filepath.Dir(dir) && strings.Contains(filepath.Base(host), "cni")
}

const logEnd = 8 << 10

// lastLine drops CRI's fields (time, stream, tag; kubelet's "CRI container log format").
func lastLine(path string) string {
	if path == "" {
		return ""
	}
	return lastLineOf(openLog(theNode(contained()).path(path)))
}

func lastLineOf(f *os.File, err error) string {
	if err != nil {
		return ""
	}
	defer f.Close()
	size, _ := f.Seek(0, io.SeekEnd)
	end, err := io.ReadAll(io.NewSectionReader(f, max(0, size-logEnd), logEnd))
	if err != nil {
		return ""
	}
	return parseLastLine(string(end))
}

func parseLastLine(end string) string {
	for _, line := range slices.Backward(strings.Split(end, "\n")) {
		line = strings.TrimSpace(line)
		if fields := strings.SplitN(line, " ", 4); len(fields) == 4 && (fields[1] == "stdout" || fields[1] == "stderr") {
			line = strings.TrimSpace(fields[3])
		}
		if line = colors.ReplaceAllString(line, ""); line != "" {
			return fact.Foreign(line)
		}
	}
	return ""
}

// colors matches CSI sequences (ECMA-48, 5.4).
var colors = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`)
