package config

import "strings"

// former is a former option name, accepted with a warning for two minor versions.
type former struct {
	since   string // first version without the name
	now     string
	same    bool // the present option accepts its value
	warning *Problem
}

func (s System) former() map[string]former {
	all := map[string]former{}
	for _, opt := range s.options() {
		if since := opt.fixed(); since != "" {
			warning := wrong("remove it", "has no effect any more: it is always %s", unquoted(opt.written()))
			all[opt.key] = former{since: since, warning: warning}
		}
		if was := strings.Fields(opt.tag.Get("was")); len(was) > 1 {
			section, key := splitKey(opt.key)
			f := former{since: was[1], now: opt.key, same: len(was) == 2}
			f.warning = wrong("write "+key+" = … in ["+section+"]", "is now called %s", opt.key)
			if !f.same {
				f.warning.What += " and written otherwise: it has no effect"
			}
			all[was[0]] = f
		}
	}
	return all
}
