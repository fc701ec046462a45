package config

import (
	"fmt"

	"github.com/pelletier/go-toml/v2"

	"github.com/cniscope/cniscope/pkg/text"
)

// Repair puts the default where o holds what no file of options could say, and returns what
// that was: for options that came from elsewhere, as in a recording.
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
