package install

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A platform writes containerd's configuration, so that changes by others are lost at its next start.
type platform struct {
	name   string
	config string
	// sealed means that only Kubernetes can install programs.
	sealed bool
	// service is the unit that starts containerd, if not its own.
	service string
}

const daemonSet = "cniscope as a DaemonSet: by its Helm chart (configs/helm/cniscope) or " +
	"examples/kubernetes/cniscope.yaml"

// platform returns what writes containerd's configuration; nil if that is the operator.
func (t tree) platform() *platform {
	for _, name := range []string{"rke2", "k3s"} {
		if file := "/var/lib/rancher/" + name + "/agent/etc/containerd/config.toml"; t.exists(file) {
			return &platform{name: name, config: file, service: name}
		}
	}
	switch {
	case t.is("talos") || t.exists("/etc/cri/containerd.toml"):
		return &platform{name: "Talos", sealed: true}
	case t.is("bottlerocket"):
		return &platform{name: "Bottlerocket", sealed: true}
	case t.is("cos"):
		return &platform{name: "Container-Optimized OS", sealed: true}
	case t.exists("/usr/bin/nodeadm") || t.exists("/usr/local/bin/nodeadm") || t.exists("/etc/eks"):
		return &platform{name: "nodeadm (Amazon EKS)", config: defaultConfig}
	case t.exists("/opt/azure/containers"):
		return &platform{name: "AKS", config: defaultConfig}
	}
	// Elsewhere, the file itself says that a program writes it.
	if c, err := t.read(defaultConfig); err == nil && c != nil && strings.Contains(string(c.data), "DO NOT EDIT") {
		return &platform{name: "another program (it says DO NOT EDIT)", config: defaultConfig}
	}
	return nil
}

// crioAddress is the default of CRI-O's pkg/config.
const crioAddress = "/var/run/crio/crio.sock"

func (t tree) crio() bool {
	has := func(paths ...string) bool { return slices.ContainsFunc(paths, t.exists) }
	return has("/etc/crio/crio.conf", "/etc/crio/crio.conf.d", "/usr/bin/crio", "/usr/local/bin/crio") &&
		!has("/usr/local/bin/containerd", "/usr/bin/containerd", defaultConfig)
}

func (p *platform) sealedError() error {
	return fmt.Errorf("nothing can be installed on a node of %s; run %s. docs/platforms.md says what to set there "+
		"first", p.name, daemonSet)
}

func (p *platform) refuse(lines string) error {
	return fmt.Errorf("%s is written by %s, so changes in it are lost; add these lines where docs/platforms.md says for "+
		"%s:\n\n%s\nThen install everything else: cniscope install --no-containerd",
		p.config, p.name, p.name, indent(lines))
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

// programs lists possible paths. Flatcar has a read-only /usr, and /opt/bin in PATH.
func programs() []string { return []string{"/usr/local/bin/cniscope", "/opt/bin/cniscope"} }

func (t tree) program() (string, error) {
	all := programs()
	if t.is("flatcar") {
		return all[1], nil
	}
	var why error
	for i, path := range all {
		dir, err := t.file(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		if i > 0 && t.existing(dir) != dir {
			break // no PATH has a missing directory
		}
		err = unfit(t.existing(dir), t.live())
		if err == nil {
			return path, nil
		}
		why = errors.Join(why, fmt.Errorf("%s: %w", dir, err))
	}
	return "", fmt.Errorf("no directory for programs: %w; nothing was changed; run %s", why, daemonSet)
}

func (t tree) existing(dir string) string {
	for ; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if _, err := t.disk.Stat(dir); err == nil {
			break
		}
	}
	return dir
}

func (t tree) release() (names []string) {
	for _, path := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		c, err := t.read(path)
		if err != nil || c == nil || c.to != "" {
			continue
		}
		fields := osRelease(string(c.data))
		return append([]string{fields["ID"]}, strings.Fields(fields["ID_LIKE"])...)
	}
	return nil
}

func (t tree) is(name string) bool { return slices.Contains(t.release(), name) }

func osRelease(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		switch quote := value[:min(1, len(value))]; quote {
		case `"`, `'`:
			value, _, _ = strings.Cut(value[1:], quote)
		default:
			value, _, _ = strings.Cut(value, " ")
		}
		fields[name] = strings.ToLower(strings.ReplaceAll(value, `\`, ""))
	}
	return fields
}
