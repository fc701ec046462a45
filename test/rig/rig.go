//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/test/port"
)

// Rig is a private containerd, or another CRI runtime (see Options).
type Rig struct {
	paths
	opts    Options
	engine  engine
	place   *place
	path    string // prefix of containerd's PATH
	metrics *port.Port
	daemon  *daemon

	conn     *grpc.ClientConn
	runtime  cri.RuntimeServiceClient
	images   cri.ImageServiceClient
	networks []Net
}

// Start sweeps earlier rigs, starts a containerd and returns once it can run pods. The caller always closes it.
// Errors wrap ErrNoTools if the tools were not built.
func Start(ctx context.Context, opts Options) (*Rig, error) {
	opts = opts.withDefaults()
	if len(opts.Networks) > networksPerRig {
		return nil, fmt.Errorf("%d networks: a rig has addresses for %d", len(opts.Networks), networksPerRig)
	}
	if opts.Tools == "" {
		tools, err := Tools(programsOf(opts)...)
		if err != nil {
			return nil, err
		}
		opts.Tools = tools
	}
	place, err := claim(rigKind, unrouted, opts.Log)
	if err != nil {
		return nil, fmt.Errorf("start a rig: %w", err)
	}
	r := &Rig{paths: paths{place.dir}, opts: opts, place: place}
	r.engine = r.engineOf()
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a rig: %w", err), r.Close())
	}
	return r, nil
}

func (r *Rig) start(ctx context.Context) error {
	// The rig's directory is a shared mount, so that the host sees containerd's mounts but not its
	// covers.
	if err := unix.Mount(r.dir, r.dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount the rig's folder: %w", err)
	}
	for _, flag := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := unix.Mount("", r.dir, "", flag, ""); err != nil {
			return fmt.Errorf("share the rig's folder: %w", err)
		}
	}
	if err := r.furnish(ctx); err != nil {
		return err
	}
	if err := r.connect(); err != nil {
		return err
	}
	if err := r.RestartContainerd(ctx); err != nil {
		return err
	}
	return r.ImportImage(ctx, r.at("pause.tar"), PauseImage)
}

func (r *Rig) furnish(ctx context.Context) error {
	if err := r.make(); err != nil {
		return err
	}
	for _, dir := range r.opts.Covers {
		if err := os.MkdirAll(r.Covered(dir), 0o755); err != nil {
			return fmt.Errorf("make a folder of the rig: %w", err)
		}
	}
	if err := makeOnHost(r.onHost()); err != nil {
		return err
	}
	r.path = r.opts.Tools
	if r.opts.Containerd != "" {
		r.path = r.opts.Containerd + ":" + r.opts.Tools
	}
	plugins, err := filepath.Glob(filepath.Join(r.opts.Tools, "cni", "*"))
	if err != nil {
		return err
	}
	for _, plugin := range plugins {
		if err := linkOrCopy(plugin, filepath.Join(r.cniBin(), filepath.Base(plugin))); err != nil {
			return fmt.Errorf("install a CNI plugin: %w", err)
		}
	}
	for name, content := range r.opts.Plugins {
		if err := r.AddPlugin(name, content); err != nil {
			return err
		}
	}
	for name, from := range r.opts.NRIPlugins {
		if err := linkOrCopy(from, filepath.Join(r.nriPlugins(), name)); err != nil {
			return fmt.Errorf("install an NRI plugin: %w", err)
		}
	}
	for name, text := range r.opts.NRIPluginConfig {
		if err := os.WriteFile(filepath.Join(r.nriConfig(), name), text, 0o600); err != nil {
			return fmt.Errorf("write the configuration of an NRI plugin: %w", err)
		}
	}
	if r.metrics, err = port.Reserve(); err != nil {
		return err
	}
	// Before the drop-ins, which migration would include.
	if err := r.engine.configure(ctx); err != nil {
		return err
	}
	for name, text := range r.opts.DropIns {
		if err := os.WriteFile(filepath.Join(r.dropIns(), name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write a drop-in: %w", err)
		}
	}
	if err := writeImage(filepath.Join(r.opts.Tools, "pause"), PauseImage, r.at("pause.tar")); err != nil {
		return err
	}
	return r.setNetworks(r.opts.Networks)
}

func (r *Rig) setNetworks(networks []Network) error {
	r.networks = nil
	for i, n := range networks {
		r.networks = append(r.networks, netOf(r.place.n, i, n.Name, r.cniData()))
	}
	return writeNetworks(r.cniConf(), r.at("staging"), networks, r.networks)
}

// AddPlugin puts an executable into the CNI bin directory and replaces an existing one, even a running one.
func (r *Rig) AddPlugin(name string, content []byte) error {
	part := r.at("staging", name)
	if err := os.WriteFile(part, content, 0o755); err != nil {
		return fmt.Errorf("write CNI plugin %s: %w", name, err)
	}
	if err := os.Rename(part, filepath.Join(r.cniBin(), name)); err != nil {
		return fmt.Errorf("install CNI plugin %s: %w", name, err)
	}
	return nil
}

// ImportImage imports an image archive and waits until CRI lists it, which depends on an event.
func (r *Rig) ImportImage(ctx context.Context, archive, name string) error {
	if err := r.engine.load(ctx, archive, name); err != nil {
		return fmt.Errorf("import image %s: %w", name, err)
	}
	return r.daemon.await(ctx, r.opts.Ready, func(ctx context.Context) error {
		status, err := r.images.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}})
		if err == nil && status.Image == nil {
			err = fmt.Errorf("CRI does not know the image %s yet", name)
		}
		return err
	})
}

func (r *Rig) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{r.Env(), "PATH=" + os.Getenv("PATH"), "HOME=" + r.dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (r *Rig) program(name string) string {
	if r.opts.Containerd != "" {
		return filepath.Join(r.opts.Containerd, name)
	}
	return filepath.Join(r.opts.Tools, name)
}

// Close removes the pods like a kubelet, stops containerd, and removes the rest. It may be called again, and after
// containerd was killed.
func (r *Rig) Close() error {
	if r.place == nil {
		return nil
	}
	if r.daemon.running() && r.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		if err := r.removeAllPods(ctx); err != nil {
			r.opts.Log.Warn("pods could not be removed; their remains are swept", "error", err)
		}
		cancel()
	}
	r.daemon.stop(10 * time.Second)
	if r.conn != nil {
		r.conn.Close()
	}
	if r.metrics != nil {
		r.metrics.Close()
	}
	err := r.place.release()
	r.place = nil
	return err
}

// Networks are the rig's networks, in order.
func (r *Rig) Networks() []Net { return slices.Clone(r.networks) }

// Dir is the rig's directory.
func (r *Rig) Dir() string { return r.dir }

// Env marks a process as the rig's, so that the sweep finds it.
func (r *Rig) Env() string { return marker + "=" + r.dir }

// Socket is containerd's and CRI's socket.
func (r *Rig) Socket() string { return r.socket() }

// ContainerdLog is the file of containerd's log.
func (r *Rig) ContainerdLog() string { return r.containerdLog() }

// MetricsURL is containerd's Prometheus endpoint.
func (r *Rig) MetricsURL() string { return "http://" + r.metrics.Addr + "/v1/metrics" }

// NRISocket is the socket for external NRI plugins.
func (r *Rig) NRISocket() string { return r.nriSocket() }

// NRIPluginDir is the directory of pre-installed NRI plugins.
func (r *Rig) NRIPluginDir() string { return r.nriPlugins() }

// CNIBinDir is the directory of the CNI plugins.
func (r *Rig) CNIBinDir() string { return r.cniBin() }

// CNIConfDir is the directory of the networks.
func (r *Rig) CNIConfDir() string { return r.cniConf() }

// Processes returns the rig's processes: containerd, shims, plugins, pause processes.
func (r *Rig) Processes() ([]Process, error) { return processesOf(r.dir) }
