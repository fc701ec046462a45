//go:build linux

package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// crio is the engine for CRI-O: its crio and pinns, Debian's conmon, the rig's runc.
type crio struct{ *Rig }

func (crio) name() string { return "crio" }

func (r *Rig) socket() string {
	if r.opts.CRIO {
		return r.at("crio.sock")
	}
	return r.paths.socket()
}

func (r crio) tool(name string) string { return filepath.Join(r.opts.Tools, "crio", name) }

func (r crio) policy() string { return r.at("policy.json") }

// command reads drop-ins of the rig only.
func (r crio) command() []string {
	return []string{r.tool("crio"), "--config", r.config(), "--config-dir", r.dropIns()}
}

func (r crio) configure(context.Context) error {
	if err := os.WriteFile(r.policy(), []byte(`{"default":[{"type":"insecureAcceptAnything"}]}`), 0o600); err != nil {
		return fmt.Errorf("write CRI-O's policy: %w", err)
	}
	if err := os.WriteFile(r.config(), []byte(r.text()), 0o600); err != nil {
		return fmt.Errorf("write CRI-O's configuration: %w", err)
	}
	return nil
}

// text is crio.conf. Every default that touches the host is overridden.
func (r crio) text() string {
	return strings.NewReplacer(
		"{dir}", r.dir, "{socket}", r.socket(), "{pause}", PauseImage, "{policy}", r.policy(),
		"{cni-bin}", r.cniBin(), "{cni-conf}", r.cniConf(), "{pinns}", r.tool("pinns"),
		"{runc}", filepath.Join(r.opts.Tools, "runc"), "{env}", r.Env(),
		"{nri}", fmt.Sprint(!r.opts.NRIDisabled), "{nri-socket}", r.nriSocket(),
		"{nri-plugins}", r.nriPlugins(), "{nri-config}", r.nriConfig(),
	).Replace(`[crio]
root = "{dir}/root"
runroot = "{dir}/state/storage"
storage_driver = "overlay"
log_dir = "{dir}/pods"
version_file = "{dir}/state/version"
clean_shutdown_file = "{dir}/state/clean"

[crio.api]
listen = "{socket}"

[crio.runtime]
log_level = "info"
selinux = false
cgroup_manager = "cgroupfs"
irqbalance_config_file = ""
irqbalance_config_restore_file = "disable"
cdi_spec_dirs = []
hooks_dir = []
container_exits_dir = "{dir}/state/exits"
container_attach_socket_dir = "{dir}/s"
namespaces_dir = "{dir}/ns"
pinns_path = "{pinns}"
default_runtime = "runc"
[crio.runtime.runtimes.runc]
runtime_path = "{runc}"
runtime_root = "{dir}/runc"
monitor_path = "/usr/bin/conmon"
monitor_cgroup = "pod"
monitor_env = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "{env}"]

[crio.image]
pause_image = "{pause}"
pause_command = ""
signature_policy = "{policy}"
signature_policy_dir = "{dir}/policies"

[crio.network]
network_dir = "{cni-conf}"
plugin_dirs = ["{cni-bin}"]

[crio.nri]
enable_nri = {nri}
nri_listen = "{nri-socket}"
nri_plugin_dir = "{nri-plugins}"
nri_plugin_config_dir = "{nri-config}"
`)
}

func (r crio) load(ctx context.Context, archive, name string) error {
	return r.run(ctx, r.tool("copyimg"), "--root", r.at("root"), "--runroot", r.at("state", "storage"), "--storage-driver", "overlay",
		"--signature-policy", r.policy(), "--image-name", name, "--import-from", "docker-archive:"+archive)
}

var foundNetwork = regexp.MustCompile(`(?m)^time="([^"]+)".*Found CNI network .* at ([^ "]+)"$`)

// loaded reads the log, because CRI-O has no API for loaded networks.
func (r crio) loaded(ctx context.Context) error {
	if err := r.ready(ctx, len(r.networks) > 0); err != nil {
		return err
	}
	log, err := os.ReadFile(r.containerdLog())
	if err != nil {
		return fmt.Errorf("see which networks CRI-O has read: %w", err)
	}
	read := map[string]time.Time{}
	for _, m := range foundNetwork.FindAllStringSubmatch(string(log), -1) {
		if read[m[2]], err = time.Parse(time.RFC3339Nano, m[1]); err != nil {
			return fmt.Errorf("see which networks CRI-O has read: %w", err)
		}
	}
	files, err := filepath.Glob(filepath.Join(r.cniConf(), "*.conflist"))
	if err != nil {
		return err
	}
	for _, path := range files {
		var s unix.Stat_t
		if err := unix.Stat(path, &s); err != nil {
			return fmt.Errorf("see when a network was put in place: %w", err)
		}
		if read[path].Before(time.Unix(s.Ctim.Unix())) {
			return fmt.Errorf("CRI-O has not read %s yet", path)
		}
	}
	return nil
}
