package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// chart packs the Helm chart as cniscope-NUMBER.tgz, like `helm package`, with the commit's time and the release's
// version.
func chart(_ context.Context, r *release) error {
	dir := filepath.Join(r.Root, "configs", "helm", "cniscope")
	text, err := os.ReadFile(filepath.Join(dir, "Chart.yaml"))
	if err == nil {
		text, err = r.chartOf(text)
	}
	if err != nil {
		return err
	}
	return r.archived("cniscope-"+r.Number+".tgz", func(a archive) error {
		// Below the chart's name, as Helm requires.
		return a.tree(dir, "cniscope", map[string][]byte{"Chart.yaml": text})
	})
}

func (r *release) chartOf(text []byte) ([]byte, error) {
	lines := map[string]string{"version": r.Number, "appVersion": fmt.Sprintf("%q", r.Number)}
	for key, value := range lines {
		line := regexp.MustCompile(`(?m)^` + key + `: .*$`)
		if n := len(line.FindAll(text, -1)); n != 1 {
			return nil, fmt.Errorf("the chart has %d lines with %s in Chart.yaml, not one", n, key)
		}
		text = line.ReplaceAll(text, []byte(key+": "+value))
	}
	text = bytes.TrimRight(text, "\n")
	if r.ImageDigest == "" {
		return append(text, '\n'), nil
	}
	if !strings.HasPrefix(r.ImageDigest, "sha256:") {
		return nil, fmt.Errorf("%q is no digest of an image", r.ImageDigest)
	}
	// Appended to annotations, the last section.
	return fmt.Appendf(text, "\n  cniscope.dev/image-digest: %s\n", r.ImageDigest), nil
}
