//go:build linux

package rig

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

type paths struct{ dir string }

func (p paths) at(names ...string) string { return filepath.Join(append([]string{p.dir}, names...)...) }

func (p paths) config() string  { return p.at("config.toml") }
func (p paths) dropIns() string { return p.at("conf.d") }

func (p paths) socket() string { return p.at("cover", "containerd", "containerd.sock") }
func (p paths) state() string  { return p.at("state") }

// stateOf is containerd's state directory; with Usual it includes the pods' root file systems.
func (p paths) stateOf(o Options) string {
	if o.Usual {
		return "/run/containerd"
	}
	return p.state()
}

func (p paths) containerdLog() string { return p.at("containerd.log") }
func (p paths) nriSocket() string     { return p.at("nri", "nri.sock") }

// nriSocketOf is the socket's path for containerd and the kernel.
func (p paths) nriSocketOf(o Options) string {
	if o.Usual {
		return "/run/nri/nri.sock"
	}
	return p.nriSocket()
}

func (p paths) nriPlugins() string { return p.at("nri", "plugins") }
func (p paths) nriConfig() string  { return p.at("nri", "conf.d") }
func (p paths) cniBin() string     { return p.at("cni", "bin") }
func (p paths) cniConf() string    { return p.at("cni", "net.d") }
func (p paths) cniData() string    { return p.at("cni", "ipam") }
func (p paths) podLogs() string    { return p.at("pods") }

func (p paths) make() error {
	dirs := []string{
		p.dropIns(), p.state(), p.nriPlugins(), p.nriConfig(), p.cniBin(), p.cniConf(), p.cniData(), p.podLogs(), p.at("staging"),
	}
	for _, c := range append(p.always(), p.usual()...) {
		dirs = append(dirs, c.by)
	}
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o711); err != nil {
			return fmt.Errorf("make a folder of the rig: %w", err)
		}
	}
	return nil
}

// containerdConfig has version 2, which every containerd since 1.5 reads, and touches nothing of
// the host.
func containerdConfig(p paths, o Options, metrics string) string {
	return strings.NewReplacer(
		"{root}", p.at("root"), "{state}", p.stateOf(o), "{temp}", p.at("temp"), "{dropins}", p.dropIns(),
		"{socket}", p.socket(), "{metrics}", metrics,
		"{pause}", PauseImage, "{cni-bin}", p.cniBin(), "{cni-conf}", p.cniConf(),
		"{networks}", fmt.Sprint(max(1, len(o.Networks))),
		"{runc}", cmp.Or(o.Runc, filepath.Join(o.Tools, "runc")), "{runc-root}", p.at("runc"),
		"{nri-off}", fmt.Sprint(o.NRIDisabled), "{nri-socket}", p.nriSocketOf(o),
		"{nri-plugins}", p.nriPlugins(), "{nri-config}", p.nriConfig(),
		"{opt}", p.at("opt"), "{shims}", p.at("s"),
	).Replace(`version = 2
root = "{root}"
state = "{state}"
temp = "{temp}"
imports = ["{dropins}/*.toml"]
disabled_plugins = ["io.containerd.image-verifier.v1.bindir", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs"]

[grpc]
  address = "{socket}"
[debug]
  level = "info"
[metrics]
  address = "{metrics}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Lowering a score needs CAP_SYS_RESOURCE, which a machine in a cloud may not give.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  disable_apparmor = true
  cdi_spec_dirs = []
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni-bin}"
    conf_dir = "{cni-conf}"
    max_conf_num = {networks}
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{runc}"
      Root = "{runc-root}"

[plugins."io.containerd.nri.v1.nri"]
  disable = {nri-off}
  socket_path = "{nri-socket}"
  plugin_path = "{nri-plugins}"
  plugin_config_path = "{nri-config}"

[plugins."io.containerd.internal.v1.opt"]
  path = "{opt}"
[plugins."io.containerd.shim.v1.manager"]
  socket_dir = "{shims}"
`)
}

// hostDropIns is imported into a migrated configuration since 2.2.
const hostDropIns = "/etc/containerd/conf.d/*.toml"

// writeConfig writes containerd's own latest version, so that drop-ins are tested against it.
func (r *Rig) writeConfig(ctx context.Context) error {
	text := containerdConfig(r.paths, r.opts, r.metrics.Addr)
	if err := os.WriteFile(r.config(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write containerd's configuration: %w", err)
	}
	own, err := exec.CommandContext(ctx, r.program("containerd"), "--config", r.config(), "config", "migrate").Output()
	if err != nil {
		r.opts.Log.Debug("containerd does not migrate configurations: version 2 it is", "error", err)
		return nil
	}
	own = bytes.ReplaceAll(own, []byte("'"+hostDropIns+"', "), nil)
	if err := os.WriteFile(r.config(), own, 0o600); err != nil {
		return fmt.Errorf("write containerd's configuration: %w", err)
	}
	return nil
}

// containerdEnv is containerd's complete environment, which CNI plugins inherit.
func containerdEnv(p paths, o Options, path string) []string {
	env := []string{
		"PATH=" + path + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + p.dir,
		marker + "=" + p.dir,
	}
	if o.OTLP != "" {
		env = append(env,
			"OTEL_EXPORTER_OTLP_ENDPOINT="+o.OTLP,
			"OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
			"OTEL_BSP_SCHEDULE_DELAY=200", // ms; default 5 s
		)
	}
	return append(env, o.Env...)
}
