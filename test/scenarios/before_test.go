//go:build linux

package scenarios

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// longTable makes a network namespace whose legacy nat table has 100,000 rules.
func longTable(s *scene) func() {
	rules := []byte("*nat\n:CNISCOPE - [0:0]\n")
	for i := range 100_000 {
		rules = fmt.Appendf(rules, "-A CNISCOPE -s 10.%d.%d.%d -j RETURN\n", i>>16, i>>8&255, i&255)
	}
	// A mount of it would be in the mount namespace of this test only.
	holder := exec.CommandContext(s.ctx, "unshare", "--net", "sh", "-c", "iptables-legacy-restore && echo && exec sleep inf")
	holder.Stdin = bytes.NewReader(append(rules, "COMMIT\n"...))
	filled, err := holder.StdoutPipe()
	harness.Check(s.T, err)
	harness.Check(s.T, holder.Start())
	if _, err := filled.Read(make([]byte, 1)); err != nil {
		s.Fatalf("filling the table: %v", err)
	}
	_ = os.Remove(rulesNetns) // left by a killed test
	harness.Check(s.T, os.Symlink(fmt.Sprintf("/proc/%d/ns/net", holder.Process.Pid), rulesNetns))
	return func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	}
}

// fewProcesses makes a cgroup that allows one process.
func fewProcesses(s *scene) func() {
	for _, root := range []string{"/sys/fs/cgroup/pids", harness.Unified(s)} {
		group := filepath.Join(root, "cniscope-few")
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		if os.WriteFile(filepath.Join(group, "pids.max"), []byte("1"), 0) != nil {
			_ = os.Remove(group)
			continue
		}
		harness.Check(s.T, os.Symlink(group, incidentDir+"/cgroup"))
		return func() { _ = os.Remove(group) }
	}
	s.Skip("no cgroup limits processes")
	return nil
}

// deadlocked starts a pod whose plugin holds its lock until the next one has waited for it.
func deadlocked(s *scene) func() {
	harness.Check(s.T, unix.Mkfifo(incidentDir+"/park", 0o600))
	harness.Check(s.T, os.WriteFile(incidentDir+"/first", nil, 0o600))
	over := s.rig.BeginPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "holder"})
	harness.Until(s, "it holds the lock", func() bool { _, err := os.Stat(incidentDir + "/first"); return err != nil })
	waited := waitedFor(s.T, incidentDir+"/contiv.lock")
	stop := whenever(waited, func() {
		time.Sleep(3 * time.Second)
		_ = os.WriteFile(incidentDir+"/park", []byte("go on"), 0)
	})
	return func() {
		stop()
		harness.Check(s.T, <-over)
	}
}
