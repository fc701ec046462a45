//go:build linux

package kubernetes

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/chart"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

var kinds = map[string]struct {
	api, resource string
	ofCluster     bool
}{
	"Namespace":                        {"/api/v1", "namespaces", true},
	"ServiceAccount":                   {"/api/v1", "serviceaccounts", false},
	"ConfigMap":                        {"/api/v1", "configmaps", false},
	"ResourceQuota":                    {"/api/v1", "resourcequotas", false},
	"Pod":                              {"/api/v1", "pods", false}, // of helm test
	"DaemonSet":                        {"/apis/apps/v1", "daemonsets", false},
	"Role":                             {"/apis/rbac.authorization.k8s.io/v1", "roles", false},
	"RoleBinding":                      {"/apis/rbac.authorization.k8s.io/v1", "rolebindings", false},
	"ClusterRole":                      {"/apis/rbac.authorization.k8s.io/v1", "clusterroles", true},
	"ClusterRoleBinding":               {"/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", true},
	"ValidatingAdmissionPolicy":        {"/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies", true},
	"ValidatingAdmissionPolicyBinding": {"/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings", true},
	"PodMonitor":                       {"/apis/monitoring.coreos.com/v1", "podmonitors", false},
	"PrometheusRule":                   {"/apis/monitoring.coreos.com/v1", "prometheusrules", false},
	"SecurityContextConstraints":       {"/apis/security.openshift.io/v1", "securitycontextconstraints", true},
}

func collection(t testing.TB, kind, namespace string) string {
	t.Helper()
	k, ok := kinds[kind]
	if !ok {
		t.Fatalf("there is a %q, which this test does not know how to create", kind)
	}
	if k.ofCluster {
		return k.api + "/" + k.resource
	}
	return k.api + "/namespaces/" + namespace + "/" + k.resource
}

var dress = map[string]string{
	"by default": "",
	"with everything": "options.export.otlp.endpoint=http://collector:4317,options.sampling.rule[0].namespace=kube-*,options.sampling.rule[0].ratio=0," +
		"options.resource.attributes.team=net,metrics.address=,podMonitor.enabled=true,prometheusRule.enabled=true,grafanaDashboard.enabled=true,resourceQuota.create=true," +
		"openshift.securityContextConstraints.create=true,spool.hostPath=/var/lib/cniscope/spool,imagePullSecrets[0].name=key," +
		"image.registry=registry.example:5000,image.digest=sha256:" + strings.Repeat("a", 64) + ",files.ca\\.crt=PEM,env[0].name=A,env[0].value=b",
	"with options of its own": "existingSecret=options,files.ca\\.crt=PEM,runtime.mount=false,nri.enabled=false,serviceAccount.create=false",
	"with Events":             "reader.events.enabled=true,reader.env[0].name=KUBERNETES_SERVICE_HOST,reader.env[0].value=api.example",
	"without the reader":      "reader.enabled=false",
}

const strictly = "?dryRun=All&fieldValidation=Strict"

// `kubectl apply --dry-run=server --validate=strict` for every profile.
func TestChartPassesTheStrictDryRun(t *testing.T) {
	c := start(t, rig.Options{})
	c.define()
	h := c.helm()
	const namespace = "tried"
	_, err := c.api.Do(c.ctx, "POST", "/api/v1/namespaces", []byte(`{"metadata":{"name":"tried"}}`))
	harness.Check(c, err)
	c.serviceAccount(namespace)
	for _, profile := range h.Profiles(t) {
		for name, values := range dress {
			t.Run(profile+" "+name, func(t *testing.T) {
				text := harness.Must(h.Template(c.ctx, "cniscope", namespace, "--set", "profile="+profile+","+values))(t)
				all := harness.Must(chart.Objects(text))(t)
				for _, o := range all {
					c.in(t).dryRun(o, namespace)
				}
			})
		}
	}
}

// dryRun expects the apiserver to accept an object without a warning.
func (c *cluster) dryRun(o chart.Object, namespace string) {
	c.Helper()
	if o.Text("kind") == "Pod" { // the chart's own account is tried, too, and not made
		o.In("spec")["serviceAccountName"] = "default"
	}
	body, err := json.Marshal(o)
	harness.Check(c, err)
	path := collection(c, o.Text("kind"), namespace) + strictly
	got, err := c.api.Do(c.ctx, "POST", path, body)
	if err != nil {
		c.Errorf("%v\n%s", err, body)
	}
	for _, warning := range got.Warnings {
		c.Errorf("%s %s: the apiserver warns: %s", o.Text("kind"), o.Text("metadata", "name"), warning)
	}
	// A misspelled field is refused.
	o["misspelt"] = true
	body = harness.Must(json.Marshal(o))(c)
	if _, err = c.api.Do(c.ctx, "POST", path, body); err == nil || !strings.Contains(err.Error(), `unknown field "misspelt"`) {
		c.Errorf("%s with a misspelt field: %v, want a refusal", o.Text("kind"), err)
	}
}
