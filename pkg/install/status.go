package install

import (
	"context"
	"time"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/control"
)

// Status describes installed files and the running cniscope.
type Status struct {
	Installed bool `json:"installed"`
	// Package is "deb", "rpm", or "package" if unknown.
	Package string `json:"package,omitempty"`
	Choice  Choice `json:"choice,omitzero"`
	// Files are "as installed", "changed since" or "missing".
	Files      []File     `json:"files,omitempty"`
	Unit       string     `json:"unit,omitempty"`
	UnitSays   string     `json:"unit_says,omitempty"`
	Containerd Containerd `json:"containerd"`
	Running    *Running   `json:"running,omitempty"`
	Unknown    []string   `json:"unknown,omitempty"`

	unitPID int
	crio    bool   // CRI-O without containerd
	edits   string // flags that `cniscope install` needs
}

// File is one installed file.
type File struct {
	Path  string `json:"path"`
	State string `json:"state"`
}

// Containerd describes containerd.
type Containerd struct {
	Version string `json:"version,omitempty"`
	From    string `json:"version_from,omitempty"`
	// PID is 0 if it does not run.
	PID   int       `json:"pid,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// NRI means that the configuration enables NRI.
	NRI    bool   `json:"nri"`
	Socket string `json:"nri_socket,omitempty"`
	// Unread lists files installed since containerd's start.
	Unread []string `json:"unread,omitempty"`
}

// Running is a running cniscope.
type Running struct {
	control.Node
	// Plugin means that containerd started it.
	Plugin bool `json:"plugin"`
}

// Look examines the installation below root, and the cniscope that runs with options, or with the installed ones. It
// continues after failed checks.
func Look(ctx context.Context, root string, options *config.Source) (*Status, error) {
	t := newTree(root, nil)
	m, err := t.manifest()
	if err != nil {
		return nil, err
	}
	s := &Status{Installed: len(m.Files) > 0 || t.packaged(), Package: t.packager(), Choice: m.Choice, crio: t.crio()}
	if s.Package != "" {
		s.Choice.As = Service
	}
	for _, e := range m.Files {
		s.Files = append(s.Files, File{e.Path, t.state(e)})
	}
	load := t.optionsNow
	if options != nil {
		load = options.Load
	}
	configured, err := load()
	if err != nil {
		s.Unknown = append(s.Unknown, err.Error())
		configured = config.Default()
	}
	s.look(ctx, t, m, configured.Runtime.Socket)
	if t.live() {
		s.lookAlive(ctx, configured)
	}
	return s, nil
}

func (t tree) state(e entry) string {
	now, err := t.at(e.Path, e.Path == enabledLink)
	switch {
	case err != nil:
		return err.Error()
	case now == nil:
		return "missing"
	case e.Insertion != nil:
		if _, found := e.Insertion.remove(now.data); !found {
			return "the line that was added is missing"
		}
		return "one line was added"
	case now.digest() != e.Digest:
		return "changed since"
	}
	return "as installed"
}

func (s *Status) look(ctx context.Context, t tree, m *manifest, socket string) {
	o := Options{Root: t.root, Choice: Choice{ContainerdConfig: m.Choice.ContainerdConfig}}.found(ctx, t, t.platform())
	c, err := t.load(o.config(), 0, nil)
	if err == nil {
		c.socket = socket
		var v Version
		if v, err = t.version(ctx, o, m, c); err == nil {
			c.major = v.Major
			s.Containerd.Version, s.Containerd.From = v.Text, v.From
			n := c.nri()
			s.Containerd.NRI, s.Containerd.Socket = n.enabled && v.hasNRI(), n.socket
			if _, imported := c.dropIn(); !imported && len(c.files) > 0 {
				s.edits = " --edit-config"
			}
		}
	}
	if err != nil {
		s.Unknown = append(s.Unknown, err.Error())
		return
	}
	if !t.live() {
		return
	}
	s.Containerd.PID, s.Containerd.Since, err = running(ctx, c.address())
	if err != nil {
		s.Unknown = append(s.Unknown, "containerd: "+err.Error())
	}
	for _, e := range m.Files {
		if forContainerd(e.Path) && t.newer(ctx, e.Path, c.address()) {
			s.Containerd.Unread = append(s.Containerd.Unread, e.Path)
		}
	}
}

func (s *Status) lookAlive(ctx context.Context, o config.Options) {
	if systemdRuns() {
		m, err := connectSystemd(ctx)
		if err == nil {
			defer m.close()
			s.Unit, _, err = m.state(ctx, unit)
			s.unitPID, s.UnitSays = m.process(ctx, unit)
		}
		if err != nil {
			s.Unknown = append(s.Unknown, err.Error())
		}
	}
	node, err := control.Client{Dir: o.State.Dir}.Node(ctx)
	if err != nil {
		s.Unknown = append(s.Unknown, err.Error())
		return
	}
	s.Running = &Running{node, s.Containerd.PID > 0 && node.Parent == s.Containerd.PID}
}
