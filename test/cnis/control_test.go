//go:build linux

package cnis

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/kube"
)

const (
	apiServer = "127.0.0.1:6443"
	token     = "rig" // of a user with all rights
	etcd      = "127.0.0.1:2379"
)

type object = map[string]any

func (n *node) controlPlane() {
	n.Helper()
	dir := n.folder("control-plane")
	program := "/usr/bin/etcd"
	if _, err := os.Stat(program); err != nil {
		n.Skip("etcd is not installed: run `make tools-cilium` first")
	}
	n.start("etcd", func(ctx context.Context) error { return kube.Reaches(ctx, etcd) },
		append([]string{program}, kube.EtcdArgs(dir, etcd, "127.0.0.1:2380")...)...)
	accounts := harness.Must(kube.AccountArgs(dir))(n.T)
	n.file("tokens", token+",admin,admin,system:masters\n")
	n.api = kube.New(apiServer, token)
	n.start("kube-apiserver", func(ctx context.Context) error {
		_, err := n.api.Do(ctx, http.MethodGet, "/readyz", nil)
		return err
	},
		append(append([]string{filepath.Join(n.tools, "kube-apiserver")}, accounts...), "--etcd-servers=http://"+etcd, "--bind-address=0.0.0.0", "--advertise-address="+nodeAddress,
			"--cert-dir="+dir,
			"--token-auth-file="+filepath.Join(n.rig.Dir(), "tokens"), "--authorization-mode=AlwaysAllow",
			"--service-cluster-ip-range="+services, "--disable-admission-plugins=ServiceAccount", "--allow-privileged")...)
	n.objects()
}

// objects creates Cilium's definitions, the node, and two services with endpoints.
func (n *node) objects() {
	n.Helper()
	n.define("cilium/crds/*/*.yaml")
	n.create("/api/v1/namespaces", object{"metadata": object{"name": "shop"}})
	n.create("/api/v1/nodes", object{
		"metadata": object{"name": nodeName, "labels": object{"kubernetes.io/hostname": nodeName}, "annotations": object{"node.alpha.kubernetes.io/ttl": "0"}},
		"spec":     object{"podCIDR": podCIDR, "podCIDRs": []string{podCIDR}},
	})
	// The status is a separate resource.
	var made object
	harness.Check(n.T, n.api.Get(n.ctx, "/api/v1/nodes/"+nodeName, &made))
	made["status"] = object{"addresses": []object{{"type": "InternalIP", "address": nodeAddress}, {"type": "Hostname", "address": nodeName}}}
	text, err := json.Marshal(made)
	harness.Check(n.T, err)
	_, err = n.api.Do(n.ctx, http.MethodPut, "/api/v1/nodes/"+nodeName+"/status", text)
	harness.Check(n.T, err)
	for name, kind := range map[string]string{"web": "ClusterIP", "ported": "NodePort"} {
		n.create("/api/v1/namespaces/shop/services", object{
			"metadata": object{"name": name},
			"spec":     object{"type": kind, "ports": []object{{"name": "http", "port": 80, "targetPort": 8080}}},
		})
		n.create("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices", object{
			"metadata":    object{"name": name, "labels": object{"kubernetes.io/service-name": name}},
			"addressType": "IPv4", "ports": []object{{"name": "http", "port": 8080, "protocol": "TCP"}},
			"endpoints": []object{{"addresses": []string{"10.244.0.200"}, "conditions": object{"ready": true}, "nodeName": nodeName}},
		})
	}
}

func (n *node) define(pattern string) {
	n.Helper()
	definitions := harness.Must(filepath.Glob(filepath.Join(n.tools, pattern)))(n.T)
	for _, file := range definitions {
		text := harness.Must(os.ReadFile(file))(n.T)
		harness.Eventually(n, func() error {
			_, err := n.api.Do(n.ctx, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", text)
			if kube.AlreadyExists(err) {
				return nil
			}
			return err
		})
	}
}

// create creates an object, with retries, since a new server may drop connections or not serve new kinds yet.
func (n *node) create(path string, o object) {
	n.Helper()
	harness.Eventually(n, func() error {
		err := n.api.Create(n.ctx, path, o)
		if kube.AlreadyExists(err) {
			return nil
		}
		return err
	})
}

func kubeconfig(server string) string {
	return kube.Config(server, token, "")
}
