package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// chart packs the Helm chart as cniscope-NUMBER.tgz, like `helm package`, with the commit's time and the release's
// version.
func chart(_ context.Context, r *release) error {
	return r.create("cniscope-"+r.Number+".tgz", func(w io.Writer) error {
		zip := gzip.NewWriter(w)
		a := archive{Writer: tar.NewWriter(zip), release: r}
		return errors.Join(a.chart(filepath.Join(r.Root, "configs", "helm", "cniscope")), a.Close(), zip.Close())
	})
}

// chart adds files in order of name, below the chart's name as Helm requires.
func (a archive) chart(dir string) error {
	return filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is no file, and a chart holds nothing else", file)
		}
		below, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		if err == nil && below == "Chart.yaml" {
			data, err = a.release.chartOf(data)
		}
		if err != nil {
			return err
		}
		return a.content(path.Join("cniscope", filepath.ToSlash(below)), data)
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

func (a archive) content(to string, data []byte) error {
	header := &tar.Header{Name: to, Mode: 0o644, Size: int64(len(data)), ModTime: a.release.Time, Format: tar.FormatPAX}
	if err := a.WriteHeader(header); err != nil {
		return err
	}
	_, err := a.Write(data)
	return err
}
