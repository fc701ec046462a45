package install

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"

	"github.com/pelletier/go-toml/v2"
)

// lacking are the sections that have to be added to a configuration so that NRI is on and,
// if asked for, containerd traces; empty if it has everything.
//
// containerd 1 takes a section from one file only: there all that is configured already is
// in it again.
func (c *configuration) lacking(v Version, trace *tracing) map[string]any {
	sections := map[string]any{}
	if v.hasNRI() && !c.nri().enabled {
		section := map[string]any{}
		if v.Major < 2 {
			section, _ = c.plugin(nriPlugin)
		}
		section["disable"] = false
		sections[nriPlugin] = section
	}
	if trace != nil && v.Major < 2 {
		maps.Copy(sections, trace.sections(c))
	}
	return sections
}

// lines is TOML for sections of plugins.
func lines(sections map[string]any) (string, error) {
	if len(sections) == 0 {
		return "", nil
	}
	var b bytes.Buffer
	e := toml.NewEncoder(&b)
	err := e.Encode(map[string]any{"plugins": sections})
	// The empty table above the others says nothing. Names are quoted as they usually are.
	text := bytes.TrimPrefix(b.Bytes(), []byte("[plugins]\n"))
	return string(regexp.MustCompile(`(?m)^\[plugins\.'([^']*)'`).ReplaceAll(text, []byte(`[plugins."$1"`))), err
}

// dropInText is the file for containerd's folder of drop-ins.
func dropInText(version int, v Version, text string) string {
	note := ""
	if v.Major < 2 {
		note = "# containerd 1 takes each section from one file only: keys of yours are repeated here.\n" +
			"# After a change of them run cniscope install again.\n"
	}
	return fmt.Sprintf("# Written by cniscope install, for containerd %s.\n%sversion = %d\n\n%s", v.Text, note, version, text)
}
