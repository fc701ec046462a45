package install

import (
	"fmt"
	"slices"

	"github.com/cniscope/cniscope/pkg/config"
)

func (p *Plan) note(format string, a ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, a...)) }

// advise notes what is left to the operator: files that stay as they are may say something
// else than cniscope would.
func (p *Plan) advise() error {
	if err := p.adviseOptions(); err != nil {
		return err
	}
	if p.options.NoContainerd {
		return nil
	}
	over := overlay{}
	for _, c := range p.changes {
		over[c.path] = c.after
	}
	c, err := p.tree.load(p.wish.config, p.wish.version.Major, over)
	if err != nil {
		return err
	}
	if n := c.nri(); !n.enabled && p.wish.version.hasNRI() {
		p.note("NRI stays off, since %s says so: every call is traced with the identity that CNI is given", n.from)
	}
	return nil
}

// adviseOptions looks at the options that will be there.
func (p *Plan) adviseOptions() error {
	const endpoint = "say where the spans go: endpoint in [export.otlp] of " + optionsFile
	step := p.Steps[slices.IndexFunc(p.Steps, func(s Step) bool { return s.Path == optionsFile })]
	if step.Does == Creates {
		p.note(endpoint)
		return nil
	}
	now, err := p.tree.read(optionsFile)
	if err != nil {
		return err
	}
	o, err := config.Default().Overlay(optionsFile, now.data)
	if err != nil {
		p.note("%v", err)
		return nil
	}
	if o.Export.OTLP.Endpoint == "" && o.Export.File.Path == "" {
		p.note(endpoint)
	}
	if p.options.As == Service && o.NRI.Enabled && o.NRI.Socket != p.wish.nri.socket {
		p.note("%s: containerd's NRI socket is %s: set that as socket in [nri]", optionsFile, p.wish.nri.socket)
	}
	return nil
}
