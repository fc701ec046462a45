//go:build linux

package chart

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func render(t *testing.T, arguments ...string) []Object {
	t.Helper()
	return renderAs(t, "cniscope", "cniscope", arguments...)
}

func renderAs(t *testing.T, release, namespace string, arguments ...string) []Object {
	t.Helper()
	text := harness.Must(New(t).Template(t.Context(), release, namespace, arguments...))(t)
	return harness.Must(Objects(text))(t)
}

func one(t *testing.T, all []Object, kind string) Object {
	t.Helper()
	some := Of(all, kind)
	if len(some) != 1 {
		t.Fatalf("%d objects are a %s, not one", len(some), kind)
	}
	return some[0]
}

func options(t *testing.T, all []Object) config.Options {
	t.Helper()
	text := one(t, all, "ConfigMap").Text("data", "cniscope.toml")
	o, err := config.Parse("cniscope.toml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return o
}

func TestEveryProfileIsSound(t *testing.T) {
	h := New(t)
	everything := []string{
		"options.export.otlp.endpoint=http://collector:4317", "metrics.address=", "podMonitor.enabled=true", "prometheusRule.enabled=true",
		"spool.hostPath=/var/lib/cniscope/spool", "namespace.create=true",
		"resourceQuota.create=true", "openshift.securityContextConstraints.create=true",
	}
	for _, profile := range h.Profiles(t) {
		for name, values := range map[string]string{"alone": "", "with everything": "," + strings.Join(everything, ",")} {
			t.Run(profile+" "+name, func(t *testing.T) {
				out, err := h.Run(t.Context(), "lint", h.Chart, "--strict", "--set", "profile="+profile+values)
				if err != nil {
					t.Errorf("%v\n%s", err, out)
				}
				options(t, render(t, "--set", "profile="+profile+values))
			})
		}
	}
}

// ct lint runs helm lint and yamllint. It does not run yamale, which Debian does not have, and needs a remote
// repository for versions and maintainers.
func TestChartTestingLintsTheChart(t *testing.T) {
	h := New(t)
	bin, err := rig.Tools("ct")
	if errors.Is(err, rig.ErrNoTools) {
		t.Skip("ct is not built: run `make tools-helm` first")
	}
	harness.Check(t, err)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "ct"), "lint", "--charts", h.Chart,
		"--lint-conf", filepath.Join(bin, "lintconf.yaml"),
		"--validate-chart-schema=false", "--validate-maintainers=false", "--check-version-increment=false")
	cmd.Env = slices.Concat(h.Env, []string{"PATH=" + bin + ":" + os.Getenv("PATH")})
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// docs/kubernetes.md names the documents with these values.
func TestProfilesSayWhatIsDifferent(t *testing.T) {
	type facts struct{ socket, networks, label string }
	generic := facts{"/run/containerd/containerd.sock", "/etc/cni/net.d", "spc_t"}
	want := map[string]facts{
		"generic": generic, "gke": generic, "eks": generic, "aks": generic, "talos": generic, "kind": generic,
		"bottlerocket": {generic.socket, generic.networks, "super_t"},
		"crio":         {"/run/crio/crio.sock", generic.networks, generic.label},
		"openshift":    {"/run/crio/crio.sock", "/etc/kubernetes/cni/net.d", generic.label},
		"k3s":          {"/run/k3s/containerd/containerd.sock", "/var/lib/rancher/k3s/agent/etc/cni/net.d", generic.label},
		"rke2":         {"/run/k3s/containerd/containerd.sock", generic.networks, generic.label},
	}
	for _, profile := range New(t).Profiles(t) {
		all := render(t, "--set", "priorityClassName=system-node-critical,profile="+profile)
		o := options(t, all)
		spec := one(t, all, "DaemonSet").In("spec", "template", "spec")
		got := facts{o.Runtime.Socket, o.CNI.ConfDir, spec.Text("containers", 0, "securityContext", "seLinuxOptions", "type")}
		harness.Equal(t, got, want[profile], profile)
		mounted := map[string]string{}
		for _, v := range spec.List("volumes") {
			mounted[v.Text("name")] = v.Text("hostPath", "path")
		}
		if mounted["runtime"] != filepath.Dir(got.socket) || mounted["cni"] != got.networks {
			t.Errorf("%s: the options name %v, mounted are %v", profile, got, mounted)
		}
		if n := len(Of(all, "ResourceQuota")); (n == 1) != (profile == "gke") {
			t.Errorf("%s: %d quotas", profile, n)
		}
		if n := len(Of(all, "SecurityContextConstraints")); (n == 1) != (profile == "openshift") {
			t.Errorf("%s: %d constraints", profile, n)
		}
	}
}

func TestAValueIsStrongerThanTheProfile(t *testing.T) {
	all := render(t, "--set", "profile=openshift,openshift.securityContextConstraints.create=false,cni.confDir=/opt/net.d,seLinuxOptions.type=container_t,runtime.socket=/run/x/y.sock")
	if len(Of(all, "SecurityContextConstraints"))+len(Of(all, "RoleBinding")) != 0 {
		t.Error("there are constraints that were switched off")
	}
	if o := options(t, all); o.CNI.ConfDir != "/opt/net.d" || o.Runtime.Socket != "/run/x/y.sock" {
		t.Errorf("the options are the profile's: %+v %+v", o.CNI, o.Runtime)
	}
}

func TestDefaults(t *testing.T) {
	all := render(t)
	o, pod := options(t, all), one(t, all, "DaemonSet").In("spec", "template", "spec")
	if class := pod.Text("priorityClassName"); class != "" || container(t, all).Text("startupProbe", "httpGet", "path") != "/healthz" {
		t.Errorf("the priority class is %q, the container %v", class, container(t, all))
	}
	containerCalled(t, render(t, "--set", "extraContainers[0].name=more,extraContainers[0].image=x"), "more")
	if o.Sampling.Ratio != 0.1 || o.Export.OTLP.Compression != "gzip" || o.Export.OTLP.Endpoint != "" || o.Metrics.Listen != "127.0.0.1:9471" {
		t.Errorf("%+v %+v %+v", o.Sampling, o.Export.OTLP, o.Metrics)
	}
}

func built(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("make", "--no-print-directory", "-C", "../..", "-n", "image")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")} // no VERSION
	out := harness.Must(cmd.Output())(t)
	name := regexp.MustCompile(` -name (\S+)`).FindSubmatch(out)
	if name == nil {
		t.Fatalf("make image names no image:\n%s", out)
	}
	return string(name[1])
}

// A source tree names the image that `make image` builds: a released one may lack its options.
func TestTheImageIsTheOneOfTheTree(t *testing.T) {
	image := built(t)
	harness.Equal(t, image, "ghcr.io/cniscope/cniscope:devel", "make image builds")
	committed := harness.Must(os.ReadFile("../../examples/kubernetes/cniscope.yaml"))(t)
	for where, text := range map[string]string{"the chart": container(t, render(t)).Text("image"), "examples/kubernetes": string(committed)} {
		for _, named := range regexp.MustCompile(`ghcr\.io/[^"\s]+`).FindAllString(text, -1) {
			if named != image {
				t.Errorf("%s names %s, and the tree is %s", where, named, image)
			}
		}
	}
	harness.Says(t, string(committed), "in no registry")
}

// `make chart` writes the committed manifest.
func TestTheCommittedManifestIsCurrent(t *testing.T) {
	h := New(t)
	rendered := harness.Must(h.Template(t.Context(), "cniscope", "cniscope", "--set", "namespace.create=true", "--skip-tests"))(t)
	committed := harness.Must(os.ReadFile("../../examples/kubernetes/cniscope.yaml"))(t)
	header := harness.Must(os.ReadFile("../../configs/helm/example.txt"))(t)
	if string(committed) != string(header)+strings.TrimPrefix(rendered, "---\n") {
		t.Error("examples/kubernetes/cniscope.yaml is not what the chart renders: run `make chart`")
	}
	alerts := harness.Must(os.ReadFile("../../examples/prometheus/alerts.yaml"))(t)
	in := harness.Must(os.ReadFile(filepath.Join(h.Chart, "files", "alerts.yaml")))(t)
	if string(alerts) != string(in) {
		t.Error("the chart's alerts are not those of examples/prometheus: run `make chart`")
	}
}

// The values of 0.2.0 still render to valid options, including values without an effect today.
func TestValuesOfTheReleaseBefore(t *testing.T) {
	const before = "testdata/values-0.2.yaml"
	if was, is := options(t, render(t, "--values="+before)), options(t, render(t, "--set=spool.hostPath=")); len(is.Changes(was)) > 0 {
		t.Errorf("they give other options: %v", is.Changes(was))
	}
	o := options(t, render(t, "--values="+before, "--set",
		"options.slow.floor=1s,options.limits.max_hold=5m,options.export.file.max_bytes=1GiB,options.slow.call=9s"))
	if defaults := config.Default(); o.Slow.Call != 9*time.Second || o.Slow.Floor != defaults.Slow.Floor ||
		o.Limits != defaults.Limits || o.Export.File != defaults.Export.File {
		t.Errorf("%+v %+v %+v", o.Slow, o.Limits, o.Export.File)
	}
}
