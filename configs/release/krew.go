package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"text/template"
)

func krew(_ context.Context, r *release) error {
	type archived struct{ OS, Arch, URI, SHA256, Bin string }
	var all []archived
	for _, p := range r.platforms {
		sum, err := sha256Of(filepath.Join(r.Out, r.archive(p)))
		if err != nil {
			return err
		}
		uri := fmt.Sprintf("https://github.com/cniscope/cniscope/releases/download/%s/%s", r.Version, r.archive(p))
		all = append(all, archived{p.os, p.arch, uri, fmt.Sprintf("%x", sum), p.executable()})
	}
	return r.create(pluginName+"_"+r.Number+"_krew.yaml", func(w io.Writer) error {
		manifest, err := template.New("krew").Parse(krewManifest)
		if err != nil {
			return err
		}
		return manifest.Execute(w, map[string]any{"Version": r.Version, "Archives": all})
	})
}

const krewManifest = `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: cniscope
spec:
  version: {{.Version}}
  homepage: https://github.com/cniscope/cniscope
  shortDescription: Say why a pod's network took so long
  description: |
    Asks the cniscope on each node what it has seen of the CNI plugins that set up pods' networks:
    why a pod took so long (why), what hangs now (ps), what is wrong with nodes (doctor), and
    what costs a whole fleet most (top). It has your rights and no others.
  caveats: |
    The cluster has to run cniscope: https://github.com/cniscope/cniscope/blob/{{.Version}}/docs/fleet.md

    To complete the names of pods:
      ln -s ~/.krew/bin/kubectl-cniscope ~/.krew/bin/kubectl_complete-cniscope
  platforms:
{{- range .Archives}}
  - selector:
      matchLabels:
        os: {{.OS}}
        arch: {{.Arch}}
    uri: {{.URI}}
    sha256: {{.SHA256}}
    bin: {{.Bin}}
{{- end}}
`
