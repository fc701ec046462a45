//go:build linux

package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/kube"
)

type object map[string]any

func (o object) at(keys ...string) any {
	var v any = o
	for _, key := range keys {
		switch m := v.(type) {
		case object:
			v = m[key]
		case map[string]any:
			v = m[key]
		default:
			return nil
		}
	}
	return v
}

func (o object) text(keys ...string) string {
	s, _ := o.at(keys...).(string)
	return s
}

type document struct {
	kind, name, path string
	yaml             []byte
}

var collections = map[string]string{
	"Namespace":      "/api/v1/namespaces",
	"ServiceAccount": "/api/v1/namespaces/cniscope/serviceaccounts",
	"ConfigMap":      "/api/v1/namespaces/cniscope/configmaps",
	"DaemonSet":      "/apis/apps/v1/namespaces/cniscope/daemonsets",

	"Role":                             "/apis/rbac.authorization.k8s.io/v1/namespaces/cniscope/roles",
	"ClusterRole":                      "/apis/rbac.authorization.k8s.io/v1/clusterroles",
	"ClusterRoleBinding":               "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
	"ValidatingAdmissionPolicy":        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
	"ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
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
		d.path = collections[d.kind]
		if d.path == "" {
			c.Fatalf("the manifest has a %q, which this test does not know how to create", d.kind)
		}
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
	harness.Check(c, c.api.Get(c.ctx, collections["DaemonSet"]+"/cniscope", &stored))
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
	template := harness.Must(json.Marshal(daemonSet.at("spec", "template")))(c)
	var pod object
	harness.Check(c, json.Unmarshal(template, &pod))
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	metadata := map[string]any{"name": name, "namespace": daemonSet.text("metadata", "namespace")}
	maps.Copy(metadata, pod.at("metadata").(map[string]any))
	pod["metadata"] = metadata
	pod.at("spec").(map[string]any)["nodeName"] = c.node
	if change != nil {
		change(pod)
	}
	return pod
}
