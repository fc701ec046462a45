package install

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// lacking returns the sections needed to enable NRI. containerd 1 uses one file's section, so existing settings are
// repeated.
func (c *configuration) lacking(v Version) map[string]any {
	if !v.hasNRI() || c.nri().enabled {
		return nil
	}
	section := map[string]any{}
	if v.Major < 2 {
		section, _ = c.plugin(nriPlugin)
	}
	section["disable"] = false
	return map[string]any{nriPlugin: section}
}

func lines(sections map[string]any) (string, error) {
	if len(sections) == 0 {
		return "", nil
	}
	var b bytes.Buffer
	e := toml.NewEncoder(&b)
	err := e.Encode(map[string]any{"plugins": sections})
	// Drop the empty parent table; quote names as usual.
	text := bytes.TrimPrefix(b.Bytes(), []byte("[plugins]\n"))
	return string(regexp.MustCompile(`(?m)^\[plugins\.'([^']*)'`).ReplaceAll(text, []byte(`[plugins."$1"`))), err
}

func dropInText(version int, v Version, text string) string {
	note := ""
	if v.Major < 2 {
		note = "# containerd 1 takes each section from one file only: keys of yours are repeated here.\n" +
			"# After a change of them run cniscope install again.\n"
	}
	return fmt.Sprintf("# Written by cniscope install, for containerd %s.\n%sversion = %d\n\n%s", v.Text, note,
		version, text)
}

const dropInName = "90-cniscope.toml"

// dropIn is in the default or another imported directory. Its name sorts it last.
func (c *configuration) dropIn() (path string, imported bool) {
	const name = dropInName
	usual := filepath.Join(defaultDropIns, name)
	var folders []string
	for _, f := range c.files {
		for _, pattern := range f.imports {
			path := filepath.Join(filepath.Dir(pattern), name)
			if ok, _ := filepath.Match(pattern, path); ok {
				folders = append(folders, path)
			}
		}
	}
	if len(folders) == 0 || slices.Contains(folders, usual) {
		return usual, len(folders) > 0
	}
	return folders[0], true
}

// An insertion is text added to a file that cniscope did not create.
type insertion struct {
	Text   string `json:"text"`
	Offset int    `json:"offset"`
}

func importsLine(dropIn string) string {
	return `imports = ["` + pattern(dropIn) + `"]`
}

func pattern(dropIn string) string { return filepath.Join(filepath.Dir(dropIn), "*.toml") }

// insertImport makes one insertion, whose removal restores every byte.
func insertImport(text []byte, dropIn string) ([]byte, insertion) {
	if at, empty, ok := importsArray(text); ok {
		in := insertion{`"` + pattern(dropIn) + `"`, at}
		if !empty {
			in.Text += ", "
		}
		return slices.Concat(text[:at], []byte(in.Text), text[at:]), in
	}
	// A top-level key must precede the first table.
	in := insertion{"# The next line was added by cniscope install; cniscope uninstall takes it out.\n" +
		importsLine(dropIn) + "\n", 0}
	return append([]byte(in.Text), text...), in
}

// remove removes an insertion, also if the text around it changed; false if it is gone.
func (in insertion) remove(text []byte) ([]byte, bool) {
	at := in.Offset
	if at > len(text) || !bytes.HasPrefix(text[at:], []byte(in.Text)) {
		if at, _, _ = importsArray(text); !strings.HasPrefix(in.Text, `"`) {
			at = 0
		}
		found := bytes.Index(text[at:], []byte(in.Text))
		if found < 0 {
			return text, false
		}
		at += found
	}
	return slices.Concat(text[:at], text[at+len(in.Text):]), true
}

// importsArray returns the offset behind its bracket, and whether it is empty.
func importsArray(text []byte) (at int, empty, ok bool) {
	p := unstable.Parser{}
	p.Reset(text)
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.KeyValue {
			return 0, false, false // the first table
		}
		keys := e.Key()
		if !keys.Next() || string(keys.Node().Data) != "imports" || !keys.IsLast() || e.Value().Kind != unstable.Array {
			continue
		}
		// The parser does not report the array's offset; only "=" and blanks follow the key.
		r := keys.Node().Raw
		open := int(r.Offset+r.Length) + bytes.IndexByte(text[r.Offset+r.Length:], '[')
		elements := e.Value().Children()
		return open + 1, !elements.Next(), true
	}
	return 0, false, false
}
