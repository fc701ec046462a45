// Command generate writes the files derived from config.Options: configs/cniscope.toml, docs/options.md, the chart's
// values.schema.json and templates/_live.tpl. Its argument is the repository's root.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/config"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: generate ROOT")
	}
	files, err := generated(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

const schemaFile = "configs/helm/cniscope/values.schema.json"

func generated(root string) (map[string]string, error) {
	explained, err := readComments(filepath.Join(root, "pkg/config"))
	if err != nil {
		return nil, err
	}
	options := config.Entries()
	before, err := os.ReadFile(filepath.Join(root, schemaFile))
	if err != nil {
		return nil, err
	}
	schema, err := withOptions(string(before), options, explained)
	files := map[string]string{}
	for file, text := range map[string]string{
		"configs/cniscope.toml": example(options, explained),
		"docs/options.md":       document(options, explained),
		schemaFile:              schema,
		"configs/helm/cniscope/templates/_live.tpl": liveOptions(options),
	} {
		files[filepath.Join(root, file)] = text
	}
	return files, err
}

// sections calls section before a section's options, and option for each with an effect.
func sections(options []config.Entry, section func(name string, fields []string), option func(config.Entry)) {
	begun := map[string]bool{}
	for _, e := range options {
		if e.Fixed != "" {
			continue
		}
		for i := 1; i < len(e.Fields); i++ {
			name := strings.Join(strings.Split(e.Key, ".")[:i], ".")
			if !begun[name] {
				begun[name] = true
				section(name, e.Fields[:i])
			}
		}
		option(e)
	}
}

func name(e config.Entry) string { return e.Key[strings.LastIndexByte(e.Key, '.')+1:] }

func effect(e config.Entry) string {
	if e.Live {
		return "at once"
	}
	return "after a restart"
}

func example(options []config.Entry, explained comments) string {
	var b strings.Builder
	b.WriteString(beginning)
	comment := func(fields []string) {
		for _, line := range explained.of(fields) {
			b.WriteString(strings.TrimRight("# "+strings.ReplaceAll(line, "\t", "  "), " ") + "\n")
		}
	}
	sections(options, func(name string, fields []string) {
		b.WriteByte('\n')
		comment(fields)
		b.WriteString("[" + name + "]\n")
	}, func(e config.Entry) {
		comment(e.Fields)
		fmt.Fprintf(&b, "# Values: %s. A change takes effect %s.\n#%s = %s\n", e.Possible, effect(e), name(e), e.Default)
	})
	return b.String()
}

const beginning = `# Options of cniscope, generated from pkg/config. Lines that begin with "#" and a name are the
# defaults: remove the "#" and change them.
#
#   cniscope config check cniscope.toml     report each mistake in a file
#   cniscope config print cniscope.toml     print the options in force with it
#
# cniscope reads the file again when it changes, and on SIGHUP. Some options take effect at once;
# the others need a restart, and the log names them. A file with a mistake changes nothing.
#
# Durations have a unit: "250ms", "2s", "10m". Sizes have one too: "8MiB".
# If containerd starts cniscope (as a pre-installed NRI plugin), the text of its NRI configuration is
# TOML too, and is stronger than this file.
`

func document(options []config.Entry, explained comments) string {
	var b strings.Builder
	b.WriteString("# Options\n\nGenerated from `pkg/config` (`make options`). " +
		"[cniscope.toml](../configs/cniscope.toml) is the same as a file to copy from;\n" +
		"[versions.md](versions.md) says how long a former name is read.\n")
	sections(options, func(name string, fields []string) {
		fmt.Fprintf(&b, "\n## `[%s]`\n\n%s\n\n| option | default | values | change | description |\n|---|---|---|---|---|\n",
			name, prose(explained.of(fields)))
	}, func(e config.Entry) {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n",
			name(e), e.Default, e.Possible, effect(e), prose(explained.of(e.Fields)))
	})
	return b.String()
}

func prose(lines []string) string {
	var parts []string
	for _, line := range lines {
		if code, ok := strings.CutPrefix(line, "\t"); ok {
			parts = append(parts, "`"+code+"`")
			continue
		}
		parts = append(parts, strings.NewReplacer("*", `\*`, "|", `\|`).Replace(line))
	}
	return strings.Join(parts, " ")
}

func withOptions(schema string, options []config.Entry, explained comments) (string, error) {
	const begin, end = "\n    \"options\": ", "\n    },\n"
	before, rest, found := strings.Cut(schema, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", errors.New("the schema has no options to replace")
	}
	text := explain(object("", options, explained), []string{described})
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(text), "    ", "  "); err != nil {
		return "", err
	}
	return before + begin + indented.String() + "," + "\n" + after, nil
}

const described = "the sections and options of cniscope.toml, but for those that are made from other values: " +
	"metrics, nri, runtime, cni, state, control and export.spool.dir"

// object returns a JSON schema. section ends in a dot, or is empty for the whole file.
func object(section string, options []config.Entry, explained comments) string {
	var properties []string
	in := "" // the latest subsection
	for _, e := range options {
		rest, ok := strings.CutPrefix(e.Key, section)
		name, _, isSection := strings.Cut(rest, ".")
		switch {
		case !ok || !e.Chart || isSection && name == in:
		case isSection:
			in = name
			fields := e.Fields[:strings.Count(section, ".")+1]
			properties = append(properties,
				fmt.Sprintf("%q: %s", name, explain(object(section+name+".", options, explained), explained.of(fields))))
		case e.Fixed != "":
			properties = append(properties, fmt.Sprintf(`%q: {"description": "has no effect since %s"}`, name, e.Fixed))
		default:
			properties = append(properties, fmt.Sprintf("%q: %s", name, explain(e.Schema, explained.of(e.Fields))))
		}
	}
	return `{"type": "object", "additionalProperties": false, "properties": {` + strings.Join(properties, ", ") + "}}"
}

func explain(schema string, lines []string) string {
	lines = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.HasPrefix(line, "\t") })
	says, _ := json.Marshal(strings.Join(lines, " ")) // a string has no error
	return fmt.Sprintf("%s, \"description\": %s}", strings.TrimSuffix(schema, "}"), says)
}

func liveOptions(options []config.Entry) string {
	var keys []string
	for _, e := range options {
		if e.Live && e.Chart {
			keys = append(keys, e.Key)
		}
	}
	return "{{/* The options that cniscope reads again without a restart, generated from pkg/config. */}}\n" +
		"{{- define \"cniscope.liveOptions\" -}}\n" + strings.Join(keys, " ") + "\n{{- end }}\n"
}
