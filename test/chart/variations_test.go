//go:build linux

package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/fleet/cluster"
	"github.com/cniscope/cniscope/test/harness"
)

func values(t *testing.T, v map[string]any) string {
	t.Helper()
	text := harness.Must(json.Marshal(v))(t)
	file := filepath.Join(t.TempDir(), "values.json")
	harness.Check(t, os.WriteFile(file, text, 0o600))
	return "--values=" + file
}

func container(t *testing.T, all []Object) Object {
	t.Helper()
	return containerCalled(t, all, "cniscope")
}

func containerCalled(t *testing.T, all []Object, name string) Object {
	t.Helper()
	for _, c := range one(t, all, "DaemonSet").In("spec", "template", "spec").List("containers") {
		if c.Text("name") == name {
			return c
		}
	}
	t.Fatalf("no container is called %s", name)
	return nil
}

// A value keeps its text, whatever the text means to YAML, TOML or a template.
func TestHostileTextArrivesAsItIs(t *testing.T) {
	for _, text := range []string{
		`"] # [metrics]`, `a: b`, "- x", "{{ .Values.image }}", "yes", "null", "1e3", "0x1F", "~", `\u0041\n`, "'", `""`, "&a *a", "%TAG", "@`", "日本 ü", " padded ", "#", "---", "|", "<&>", "x = 1",
	} {
		all := render(t, values(t, map[string]any{
			"options":        map[string]any{"resource": map[string]any{"cluster": text, "attributes": map[string]any{"some.key": text}}},
			"env":            []any{map[string]any{"name": "TEXT", "value": text}},
			"podAnnotations": map[string]any{"example.com/text": text},
			"files":          map[string]any{"text.txt": text},
		}))
		if o := options(t, all); o.Resource.Cluster != text || o.Resource.Attributes["some.key"] != text {
			t.Errorf("%q: the options have %+v", text, o.Resource)
		}
		harness.Equal(t, container(t, all).Text("env", 1, "value"), text, "the variable")
		harness.Equal(t, one(t, all, "DaemonSet").Text("spec", "template", "metadata", "annotations", "example.com/text"), text, "the annotation")
		harness.Equal(t, one(t, all, "ConfigMap").Text("data", "text.txt"), text, "the file")
	}
}

func TestOptionsArrive(t *testing.T) {
	if none, empty := options(t, render(t, "--set", "options=null")), config.Default(); none.Sampling.Ratio != empty.Sampling.Ratio {
		t.Errorf("no options: %+v", none.Sampling)
	}
	o := options(t, render(t, values(t, map[string]any{
		"options": map[string]any{
			"sampling": map[string]any{"ratio": 1, "per_second": 1000, "rule": []any{map[string]any{"namespace": "kube-*", "ratio": 0.01}}, "keep": []any{}},
			"slow":     map[string]any{"hung": "1m", "rule": []any{map[string]any{"command": "ip*", "threshold": "1s"}}},
			"export":   map[string]any{"otlp": map[string]any{"endpoint": "https://c", "insecure": false, "headers": map[string]any{"x-scope-orgid": "nodes"}}, "spool": map[string]any{"max_age": "2h"}},
			"limits":   map[string]any{"processes": 100000},
			"probe":    map[string]any{"agents": []any{"antrea-agent"}, "rootless": true, "callers": []any{"/usr/bin/containerd"}},
			"log":      map[string]any{"level": "debug"},
		},
		"spool": map[string]any{"hostPath": "/var/lib/cniscope/spool"},
	})))
	if o.Sampling.Ratio != 1 || o.Sampling.PerSecond != 1000 || len(o.Sampling.Keep) != 0 || o.Sampling.Rules[0] != (config.NamespaceRule{Namespace: "kube-*", Ratio: 0.01}) {
		t.Errorf("%+v", o.Sampling)
	}
	if o.Slow.Hung.String() != "1m0s" || o.Slow.Rules[0].Command != "ip*" || o.Limits.Processes != 100000 || !o.Probe.Rootless || o.Probe.Agents[0] != "antrea-agent" || o.Log.Level != "debug" {
		t.Errorf("%+v %+v %+v %+v", o.Slow, o.Limits, o.Probe, o.Log)
	}
	if o.Export.OTLP.Headers["x-scope-orgid"].Reveal() != "nodes" || o.Export.OTLP.Compression != "gzip" || o.Export.Spool.Dir != "/var/lib/cniscope/spool" || o.Export.Spool.MaxAge.Hours() != 2 {
		t.Errorf("%+v", o.Export)
	}
}

func TestWhereMetricsAreServed(t *testing.T) {
	for address, want := range map[string][2]string{
		"":          {":9471", "127.0.0.1"},
		"127.0.0.1": {"127.0.0.1:9471", "127.0.0.1"},
		"0.0.0.0":   {"0.0.0.0:9471", "127.0.0.1"},
		"10.0.0.7":  {"10.0.0.7:9471", "10.0.0.7"},
		"::1":       {"[::1]:9471", "::1"},
		"[::1]":     {"[::1]:9471", "::1"},
		"::":        {"[::]:9471", "::1"},
		"fd00::7":   {"[fd00::7]:9471", "fd00::7"},
	} {
		all := render(t, "--set", "metrics.address="+address)
		harness.Equal(t, options(t, all).Metrics.Listen, want[0], address, "it listens on")
		harness.Equal(t, container(t, all).Text("readinessProbe", "httpGet", "host"), want[1], address, "kubelet asks")
	}
	all := render(t, "--set", "metrics.web.existingSecret=web,metrics.address=")
	text := one(t, all, "ConfigMap").Text("data", "cniscope.toml")
	for _, line := range []string{`listen = ":9471"`, `web_config = "/etc/cniscope-web/web-config.yml"`, `health_listen = "127.0.0.1:9473"`} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the options do not say %s:\n%s", line, text)
		}
	}
	harness.Equal(t, container(t, all).At("livenessProbe", "httpGet", "port"), 9473, "kubelet asks port")
}

func TestWhereImagesComeFrom(t *testing.T) {
	tag := strings.TrimPrefix(built(t), "ghcr.io/cniscope/cniscope")
	digest := "sha256:" + strings.Repeat("0a", 32)
	for set, want := range map[string]string{
		"":                                     "ghcr.io/cniscope/cniscope" + tag,
		"image.tag=v9":                         "ghcr.io/cniscope/cniscope:v9",
		"image.digest=" + digest:               "ghcr.io/cniscope/cniscope@" + digest,
		"image.tag=v9,image.digest=" + digest:  "ghcr.io/cniscope/cniscope@" + digest,
		"global.imageRegistry=mirror.example":  "mirror.example/cniscope/cniscope" + tag,
		"image.registry=registry.example:5000": "registry.example:5000/cniscope/cniscope" + tag,
		"image.registry=r.example/mirror,image.repository=tools/cniscope": "r.example/mirror/tools/cniscope" + tag,
		"image.registry=[fd00::1]:5000":                                   "[fd00::1]:5000/cniscope/cniscope" + tag,
	} {
		harness.Equal(t, container(t, render(t, "--set", set)).Text("image"), want, set)
	}
}

// kubectl cniscope and the alerts find the pods whatever they are called.
func TestPodsAreFoundUnderAnotherName(t *testing.T) {
	key, value, _ := strings.Cut(cluster.Selector, "=")
	for _, set := range []string{"nameOverride=", "nameOverride=foo", "fullnameOverride=foo"} {
		all := render(t, "--set", set+",podMonitor.enabled=true,metrics.address=")
		if got := one(t, all, "DaemonSet").Text("spec", "template", "metadata", "labels", key); got != value {
			t.Errorf("%s: kubectl cniscope selects %s, and the pods have %q", set, cluster.Selector, got)
		}
		label := one(t, all, "PodMonitor").Text("spec", "jobLabel")
		if job := one(t, all, "DaemonSet").Text("spec", "template", "metadata", "labels", label); job != "cniscope" {
			t.Errorf("%s: the job is %q, and the alerts select cniscope", set, job)
		}
	}
}

// Objects refuses a key that a map has twice.
func TestTheChartsLabelsWin(t *testing.T) {
	theirs := map[string]any{"app.kubernetes.io/part-of": "x", "app.kubernetes.io/name": "x", "app.kubernetes.io/instance": "x", "helm.sh/chart": "x", "pod-security.kubernetes.io/enforce": "x", "team": "a"}
	set := map[string]any{"namespace": map[string]any{"create": true}, "metrics": map[string]any{"address": ""}, "commonLabels": theirs, "podLabels": theirs}
	for _, kind := range []string{"podMonitor", "prometheusRule", "grafanaDashboard"} {
		set[kind] = map[string]any{"enabled": true, "labels": theirs}
	}
	all := render(t, values(t, set))
	for _, o := range all {
		labels := o.In("metadata", "labels")
		if labels != nil && (labels["app.kubernetes.io/name"] != "cniscope" || labels["helm.sh/chart"] == "x" || labels["team"] != "a") {
			t.Errorf("%s has the labels %v", o.Text("kind"), labels)
		}
	}
	pod, selects := one(t, all, "DaemonSet").In("spec", "template", "metadata", "labels"), one(t, all, "DaemonSet").In("spec", "selector", "matchLabels")
	for key, value := range selects {
		harness.Equal(t, pod[key], value, "the pod's", key)
	}
	key, value, _ := strings.Cut(cluster.Selector, "=")
	harness.Equal(t, pod.Text(key), value, key)
	harness.Equal(t, pod.Text("team"), "a")
	harness.Equal(t, one(t, all, "Namespace").Text("metadata", "labels", "pod-security.kubernetes.io/enforce"), "privileged")
}

// helm test asks a node that the DaemonSet selects.
func TestTheTestRunsWhereCniscopeDoes(t *testing.T) {
	all := render(t, values(t, map[string]any{
		"nodeSelector": map[string]any{"pool": "a"}, "tolerations": []any{map[string]any{"operator": "Exists"}},
		"affinity": map[string]any{"nodeAffinity": map[string]any{}},
	}))
	spec := one(t, all, "DaemonSet").In("spec", "template", "spec")
	for _, key := range []string{"nodeSelector", "affinity", "tolerations"} {
		if got := one(t, all, "Pod").At("spec", key); got == nil || !reflect.DeepEqual(got, spec.At(key)) {
			t.Errorf("%s of helm test: %v, of the DaemonSet: %v", key, got, spec.At(key))
		}
	}
}

// For clusters without internet access: the rendering contains only images and addresses of the values.
func TestNothingIsContactedThatNoValueNames(t *testing.T) {
	h := New(t)
	for _, profile := range h.Profiles(t) {
		text, err := h.Template(t.Context(), "cniscope", "cniscope", "--set", "profile="+profile+
			",image.registry=registry.example:5000,metrics.address=,podMonitor.enabled=true,prometheusRule.enabled=true,grafanaDashboard.enabled=true")
		harness.Check(t, err)
		all := harness.Must(Objects(text))(t)
		plain := harness.Must(json.Marshal(all))(t)
		plain = regexp.MustCompile(`"runbook_url":"[^"]*"`).ReplaceAll(plain, nil) // for people
		for _, address := range regexp.MustCompile(`[a-z]+://[^"\\ ]+`).FindAllString(string(plain), -1) {
			harness.Equal(t, address, "http://127.0.0.1:9471/", profile, "the rendering names")
		}
		images := regexp.MustCompile(`"image":"([^"]*)"`).FindAllStringSubmatch(string(plain), -1)
		if len(images) != 3 { // the reader and helm test use cniscope's image
			t.Errorf("%s: the images are %q", profile, images)
		}
		for _, image := range images {
			if !strings.HasPrefix(image[1], "registry.example:5000/") {
				t.Errorf("%s: %s is of another registry", profile, image[1])
			}
		}
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 52) + "b" // Helm's limit
	everything := "profile=openshift,resourceQuota.create=true,metrics.address=,podMonitor.enabled=true,prometheusRule.enabled=true,grafanaDashboard.enabled=true"
	for _, set := range []string{"", ",nameOverride=" + strings.Repeat("n", 80), ",fullnameOverride=" + strings.Repeat("f", 62) + "-g"} {
		all := renderAs(t, long, "some-where", "--set", everything+set)
		for _, o := range all {
			if name := o.Text("metadata", "name"); len(name) > 253 || o.Text("kind") == "DaemonSet" && len(name) > 63 || strings.HasSuffix(name, "-") {
				t.Errorf("%s is called %s", o.Text("kind"), name)
			}
			if namespace := o.At("metadata", "namespace"); namespace != nil && namespace != "some-where" {
				t.Errorf("%s is in %s", o.Text("kind"), namespace)
			}
			for key, value := range o.In("metadata", "labels") {
				if text, ok := value.(string); !ok || len(text) > 63 {
					t.Errorf("%s has the label %s=%v", o.Text("kind"), key, value)
				}
			}
		}
	}
	names := func(release, namespace string) map[string]bool {
		found := map[string]bool{}
		for _, o := range renderAs(t, release, namespace, "--set", everything) {
			found[o.Text("kind")+" "+o.Text("metadata", "namespace")+" "+o.Text("metadata", "name")] = true
		}
		return found
	}
	first := names("cniscope", "one")
	for _, other := range []map[string]bool{names("another", "one"), names("cniscope", "two")} {
		for name := range maps.Keys(other) {
			if first[name] {
				t.Errorf("two releases have %s", name)
			}
		}
	}
}

// Only options that need a restart replace the pods.
func TestWhichChangesRestart(t *testing.T) {
	annotation := func(set string) string {
		return one(t, render(t, "--set", set), "DaemonSet").Text("spec", "template", "metadata", "annotations", "cniscope.dev/options")
	}
	before := annotation("")
	for _, set := range []string{"options.sampling.ratio=1", "options.slow.call=5s", "options.export.otlp.endpoint=http://c:4317", "options.relay.upstream=http://c:4317", "options.log.level=debug"} {
		harness.Equal(t, annotation(set), before, set, "restarts the pods")
	}
	for _, set := range []string{
		"options.slow.hung=30s", "options.probe.ring=16MiB", "options.log.format=json", "options.resource.cluster=a", "options.export.queue=9", "options.relay.listen=127.0.0.1:4319",
		"options.slow.readiness=30s", "options.slow.first_connection=1s", "options.trace.labels={app}", "metrics.port=9999", "profile=k3s", "nri.enabled=false",
	} {
		if annotation(set) == before {
			t.Errorf("%s changes nothing until the pods are restarted, and they are not", set)
		}
	}
}
