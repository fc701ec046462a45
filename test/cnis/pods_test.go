//go:build linux

package cnis

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
	"github.com/cniscope/cniscope/test/tied"
)

// observe starts cniscope. A call is slow from one second on, twice an ordinary one.
func (n *node) observe() {
	n.Helper()
	n.observeWith("")
}

func (n *node) observeWith(toml string) {
	n.Helper()
	n.spans = filepath.Join(n.rig.Dir(), "spans.jsonl")
	var err error
	n.scope, err = scope.Start(n.ctx, n.rig, scope.Options{Program: program, Node: nodeName, TOML: fmt.Sprintf(
		"[export.file]\npath = %q\n[limits]\nsettle = \"2s\"\n[sampling]\nper_second = 0\n[slow]\ncall = \"1s\"\n", n.spans) + toml})
	harness.Check(n.T, err)
	if dir := os.Getenv("CNISCOPE_TEST_LOGS"); dir != "" {
		n.record(filepath.Join(dir, n.Name()+".rec.gz"))
	}
}

func (n *node) record(file string) {
	n.Helper()
	cmd := exec.CommandContext(n.ctx, program, "record", file, "--overwrite", "--config", n.scope.Config())
	harness.Check(n.T, tied.Start(cmd))
	n.stopRecord = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}
}

type pod struct {
	name, sandbox string
	err           error
	took          time.Duration
}

func (n *node) describe(name string, labels map[string]string) (uid string) {
	n.Helper()
	return n.describeAs(object{"name": name, "namespace": "shop", "labels": labels})
}

func (n *node) describeAs(metadata object) (uid string) {
	n.Helper()
	text := harness.Must(json.Marshal(object{
		"metadata": metadata,
		"spec": object{
			"nodeName": nodeName, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0,
			"containers": []object{{"name": "c", "image": rig.PauseImage}},
		},
	}))(n.T)
	answer := harness.Must(n.api.Do(n.ctx, http.MethodPost, "/api/v1/namespaces/shop/pods", text))(n.T)
	var made struct{ Metadata struct{ UID string } }
	harness.Check(n.T, json.Unmarshal(answer.Body, &made))
	return made.Metadata.UID
}

func (n *node) begin(name string, labels map[string]string) func() pod {
	n.Helper()
	return n.beginAs(name, n.describe(name, labels))
}

func (n *node) beginAs(name, uid string) func() pod {
	n.Helper()
	o := rig.PodOptions{Namespace: "shop", Name: name, UID: uid}
	done := make(chan pod, 1)
	go func() {
		began := time.Now()
		sandbox, err := n.rig.RunPod(n.ctx, o)
		done <- pod{name, sandbox, err, time.Since(began)}
	}()
	return func() pod { return <-done }
}

var web = map[string]string{"app": "web"}

func (n *node) add(name string) pod {
	n.Helper()
	p := n.begin(name, web)()
	harness.Check(n.T, p.err)
	return p
}

func (n *node) crowd(prefix string, count int) []pod {
	n.Helper()
	var waits []func() pod
	for i := range count {
		waits = append(waits, n.begin(fmt.Sprintf("%s-%d", prefix, i), web))
	}
	pods := make([]pod, count)
	var all sync.WaitGroup
	for i, wait := range waits {
		all.Go(func() { pods[i] = wait() })
	}
	all.Wait()
	return pods
}

func (n *node) remove(pods ...pod) {
	n.Helper()
	for _, p := range pods {
		if p.sandbox != "" {
			harness.Check(n.T, n.rig.StopPod(n.ctx, p.sandbox))
			harness.Check(n.T, n.rig.RemovePod(n.ctx, p.sandbox))
		}
		_, err := n.api.Do(n.ctx, http.MethodDelete, "/api/v1/namespaces/shop/pods/"+p.name, nil)
		harness.Check(n.T, err)
	}
}

func plugins() (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range files {
		if name, err := os.ReadFile(file); err == nil && string(name) == "cilium-cni\n" {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}
