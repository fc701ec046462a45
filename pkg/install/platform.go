package install

import (
	"fmt"
	"slices"
	"strings"
)

// A platform writes containerd's configuration itself: what anybody else puts there is gone with the next
// start. What it wants instead it is told by the operator, in its own way.
type platform struct {
	name string
	// config is the configuration of containerd's that it writes.
	config string
	// sealed: nothing can be installed on it at all but by Kubernetes.
	sealed bool
	// service is set where containerd has no unit of its own: the one that starts it.
	service string
	// advice is where the lines have to go.
	advice func(w wanted) string
}

// wanted is what containerd's configuration lacks.
type wanted struct {
	major   int
	toml    string // the lines, without a version
	tracing string // endpoint and protocol as OTEL_* variables, one a line; empty: not asked for
	imports []string
}

// daemonSet is what to run instead, for the middle of a sentence.
const daemonSet = "cniscope as a DaemonSet: by its Helm chart (configs/helm/cniscope) or examples/kubernetes/cniscope.yaml.\n"

// platform recognises by its marks who writes containerd's configuration; nil if that is the operator.
func (t tree) platform() *platform {
	for _, name := range []string{"rke2", "k3s"} {
		if dir := "/var/lib/rancher/" + name + "/agent/etc/containerd"; t.exists(dir + "/config.toml") {
			return &platform{name: name, config: dir + "/config.toml", service: name, advice: func(w wanted) string { return rancher(name, dir, w) }}
		}
	}
	switch {
	case t.is("talos") || t.exists("/etc/cri/containerd.toml"):
		return &platform{name: "Talos", config: "/etc/cri/containerd.toml", sealed: true, advice: func(w wanted) string { return talos(w, t.lockdown()) }}
	case t.is("bottlerocket"):
		return &platform{name: "Bottlerocket", config: defaultConfig, sealed: true, advice: bottlerocket}
	case t.is("cos"):
		return &platform{name: "Container-Optimized OS", config: defaultConfig, sealed: true, advice: cos}
	case t.exists("/usr/bin/nodeadm") || t.exists("/usr/local/bin/nodeadm") || t.exists("/etc/eks"):
		return &platform{name: "nodeadm (Amazon EKS)", config: defaultConfig, advice: nodeadm}
	case t.exists("/opt/azure/containers"):
		return &platform{name: "AKS", config: defaultConfig, advice: aks}
	}
	// The folders may lie elsewhere; the file says by itself who writes it.
	if c, err := t.read(defaultConfig); err == nil && c != nil && strings.Contains(string(c.data), "DO NOT EDIT") {
		return &platform{name: "another program (it says DO NOT EDIT)", config: defaultConfig, advice: func(w wanted) string {
			return "Have that program write these lines into it:\n\n" + indent(w.toml) + "\n"
		}}
	}
	return nil
}

// crioAddress is where CRI-O listens unless it is told otherwise (its pkg/config).
const crioAddress = "/var/run/crio/crio.sock"

// crio reports whether the node has CRI-O and no containerd.
func (t tree) crio() bool {
	has := func(paths ...string) bool { return slices.ContainsFunc(paths, t.exists) }
	return has("/etc/crio/crio.conf", "/etc/crio/crio.conf.d", "/usr/bin/crio", "/usr/local/bin/crio") && !has(append(binaries, defaultConfig)...)
}

// refuse is the error that says what to do instead.
func (p *platform) refuse(w wanted) error {
	if p.sealed {
		return fmt.Errorf("nothing can be installed on a node of %s.\n%s", p.name, strings.TrimRight(p.advice(w), "\n"))
	}
	return fmt.Errorf("%s is written by %s: what is changed there is lost.\n%sThen install everything else: cniscope install --no-containerd", p.config, p.name, p.advice(w))
}

// rancher: k3s and RKE2 make config.toml from a template at each start. Newer ones
// (containerd 2) also import a folder.
func rancher(name, dir string, w wanted) string {
	var b strings.Builder
	if w.toml != "" {
		file := dir + "/config.toml.tmpl"
		if w.major >= 2 {
			file = dir + "/config-v3.toml.tmpl"
		}
		switch folder := dir + "/config-v3.toml.d/*.toml"; {
		case slices.Contains(w.imports, folder):
			fmt.Fprintf(&b, "Put these lines into %s/config-v3.toml.d/90-cniscope.toml:\n\n%s\n", dir, indent(w.toml))
		default:
			fmt.Fprintf(&b, "Put these lines into %s (the first one only if the file is new):\n\n%s\n", file, indent("{{ template \"base\" . }}\n\n"+w.toml))
		}
	}
	service, environment := "k3s (on agents k3s-agent)", "/etc/systemd/system/k3s.service.env (on agents k3s-agent.service.env)"
	if name == "rke2" {
		service, environment = "rke2-server (on agents rke2-agent)", "/etc/default/rke2-server (on agents rke2-agent)"
	}
	if w.tracing != "" && w.major >= 2 {
		fmt.Fprintf(&b, "containerd has the environment of %s: add to %s\n\n%s\n", name, environment, indent(w.tracing))
	}
	fmt.Fprintf(&b, "and run: systemctl restart %s\n", service)
	return b.String()
}

// talos:
// https://docs.siderolabs.com/talos/latest/configure-your-talos-cluster/images-container-runtime/containerd
func talos(w wanted, lockdown string) string {
	text := talosLockdown(lockdown)
	if w.toml != "" {
		text += "NRI is off in /etc/cri/containerd.toml. Add this document to the machine configuration, by `talosctl patch mc` (Talos 1.14 and later; NRI is on there already):\n\n" +
			indent("apiVersion: v1alpha1\nkind: CRICustomizationConfig\nname: cniscope\ncontent: |\n"+indent(w.toml)) +
			"\nBefore Talos 1.14:\n\n" +
			indent("machine:\n  files:\n    - path: /etc/cri/conf.d/20-customization.part\n      op: create\n      content: |\n"+indent(indent(indent(indent(w.toml))))) + "\n"
	}
	return text + "Then run " + daemonSet
}

func bottlerocket(w wanted) string {
	text := "Bottlerocket has no setting for NRI; it is on in variants with containerd 2 (Kubernetes 1.33 and later).\n"
	if w.major == 1 {
		text += "Without it cniscope traces every call with the identity that CNI is given.\n"
	}
	return text + "Run " + daemonSet
}

// cos: https://cloud.google.com/container-optimized-os/docs/concepts/disks-and-filesystem
func cos(wanted) string {
	return "Its root is read-only, /etc is made anew at each boot, and programs are not run from most of what can be written to.\nRun " + daemonSet
}

// nodeadm merges the lines of its NodeConfig into the configuration it writes.
func nodeadm(w wanted) string {
	return "Put the lines into the node's user data, and replace the node:\n\n" +
		indent("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  containerd:\n    config: |\n"+indent(indent(indent(w.toml)))) + "\n"
}

func aks(w wanted) string {
	return "AKS has no setting for it; NRI is on in node images with containerd 2 (Kubernetes 1.33 and later).\n" +
		"A DaemonSet of yours may add these lines and restart containerd, on every new node anew:\n\n" + indent(w.toml) +
		"\nWithout them cniscope traces every call with the identity that CNI is given.\n"
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("  ")
		}
		b.WriteString(line)
	}
	return b.String()
}
