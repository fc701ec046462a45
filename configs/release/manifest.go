package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func staticManifest(_ context.Context, r *release) error {
	text, err := os.ReadFile(filepath.Join(r.Root, "examples", "kubernetes", "cniscope.yaml"))
	if err == nil {
		text, err = r.manifestOf(text)
	}
	if err != nil {
		return err
	}
	return r.create("cniscope_"+r.Number+"_kubernetes.yaml", func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// manifestOf replaces the development version, also the remark that its image is in no registry.
func (r *release) manifestOf(text []byte) ([]byte, error) {
	for _, line := range []struct{ devel, release string }{
		{`/version: "devel"`, fmt.Sprintf("/version: %q", r.Number)},
		{`/chart: "cniscope-0.0.0-devel"`, fmt.Sprintf("/chart: %q", "cniscope-"+r.Number)},
		{imageName + ":devel", imageName + ":" + r.Version},
	} {
		if !bytes.Contains(text, []byte(line.devel)) {
			return nil, fmt.Errorf("the manifest does not contain %s; run `make chart`", line.devel)
		}
		text = bytes.ReplaceAll(text, []byte(line.devel), []byte(line.release))
	}
	start, end := bytes.Index(text, []byte("# The image cniscope:devel")), bytes.Index(text, []byte("# First set"))
	if start < 0 || end < start {
		return nil, errors.New("the manifest has no remark on the image cniscope:devel; see configs/helm/example.txt")
	}
	text = bytes.Replace(text, text[start:end], nil, 1)
	if bytes.Contains(text, []byte("devel\"")) {
		return nil, errors.New("the manifest still names the development version")
	}
	return text, nil
}
