//go:build linux

package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/cniscope/cniscope/test/chart"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/kube"
)

type object = chart.Object

type document struct {
	kind, name, path string
	yaml             []byte
}

// manifest splits the file. The apiserver parses the YAML; kind and name suffice here.
func (c *cluster) manifest() (documents []document) {
	c.Helper()
	text := harness.Must(os.ReadFile(manifestFile))(c)
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		d := document{yaml: part}
		for line := range strings.Lines(string(part)) {
			if kind, ok := strings.CutPrefix(line, "kind: "); ok {
				d.kind = strings.TrimSpace(kind)
			}
			if name, ok := strings.CutPrefix(line, "  name: "); ok && d.name == "" {
				d.name = strings.Trim(strings.TrimSpace(name), `"`)
			}
		}
		d.path = collection(c, d.kind, "cniscope")
		documents = append(documents, d)
	}
	return documents
}

// changed lists the test's changes to the manifest: the endpoint, and complete sampling.
func (c *cluster) changed() map[string]string {
	return map[string]string{
		"[export.otlp]\n": fmt.Sprintf("[export.otlp]\n    endpoint = %q\n", c.jaeger.OTLP()),
		"ratio = 0.1\n":   "ratio = 1.0\n",
	}
}

func (c *cluster) apply() object {
	c.Helper()
	replaced := map[string]int{}
	for _, d := range c.manifest() {
		for from, to := range c.changed() {
			if n := bytes.Count(d.yaml, []byte(from)); n > 0 {
				replaced[from] += n
				d.yaml = bytes.ReplaceAll(d.yaml, []byte(from), []byte(to))
			}
		}
		if _, err := c.api.Do(c.ctx, "POST", d.path, d.yaml); err != nil && !kube.AlreadyExists(err) {
			c.Fatal(err)
		}
		if d.kind == "Namespace" {
			c.serviceAccount(d.name)
		}
	}
	for from := range c.changed() {
		if replaced[from] != 1 {
			c.Fatalf("%q is %d times in the manifest, not once", from, replaced[from])
		}
	}
	var stored object
	harness.Check(c, c.api.Get(c.ctx, collection(c, "DaemonSet", "cniscope")+"/cniscope", &stored))
	return stored
}

// serviceAccount replaces the controller manager: pods need a service account.
func (c *cluster) serviceAccount(namespace string) {
	c.Helper()
	err := c.api.Create(c.ctx, "/api/v1/namespaces/"+namespace+"/serviceaccounts", object{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": "default"},
	})
	if err != nil && !kube.AlreadyExists(err) {
		c.Fatal(err)
	}
}

// podOf replaces the DaemonSet controller and the scheduler.
func (c *cluster) podOf(daemonSet object, name string, change func(pod object)) object {
	c.Helper()
	template := harness.Must(json.Marshal(daemonSet.At("spec", "template")))(c)
	var pod object
	harness.Check(c, json.Unmarshal(template, &pod))
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	metadata := map[string]any{"name": name, "namespace": daemonSet.Text("metadata", "namespace")}
	maps.Copy(metadata, pod.In("metadata"))
	pod["metadata"] = metadata
	pod.In("spec")["nodeName"] = c.node
	if change != nil {
		change(pod)
	}
	return pod
}
