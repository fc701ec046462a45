package config

import (
	"fmt"

	"github.com/pelletier/go-toml/v2"

	"github.com/cniscope/cniscope/pkg/text"
)

// Repair replaces by its default each option of o that no options file could hold, and describes
// what it replaced. It is for options from elsewhere, as those in a recording.
func (o *Options) Repair() (said []string) {
	usual := Default()
	defaults := usual.schema()
	for i, opt := range o.schema() {
		if opt.same(defaults[i].field) {
			continue
		}
		is := opt.toml()
		var decoded map[string]any
		if toml.Unmarshal([]byte("is = "+is), &decoded) == nil && len(opt.set(decoded["is"])) == 0 {
			continue
		}
		opt.take(defaults[i].field)
		said = append(said, fmt.Sprintf("%s = %s cannot be; the default %s is taken", opt.key, text.Clean(is, 64), opt.toml()))
	}
	return said
}
