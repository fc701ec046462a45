package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestTheChartIsOfTheRelease(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	build := func() []byte {
		r := &release{
			Version: "v1.2.3-rc.1", Number: "1.2.3-rc.1", Root: root, Out: t.TempDir(),
			Time: time.Unix(1_700_000_000, 0).UTC(), ImageDigest: "sha256:" + strings.Repeat("ab", 32),
		}
		if err := chart(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(r.Out, "cniscope-1.2.3-rc.1.tgz"))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	packed := build()
	if !bytes.Equal(packed, build()) {
		t.Error("built twice, the chart is not the same bytes")
	}
	if helm := filepath.Join(root, "test/tools/bin/helm"); exists(helm) {
		file := filepath.Join(t.TempDir(), "cniscope.tgz")
		if err := os.WriteFile(file, packed, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), helm, "template", "release", file).CombinedOutput()
		if err != nil || !strings.Contains(string(out), `image: "ghcr.io/cniscope/cniscope:v1.2.3-rc.1"`) {
			t.Errorf("helm: %v\n%s", err, out)
		}
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for a := tar.NewReader(zip); ; {
		h, err := a.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(a)
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode != 0o644 || h.Uid != 0 || h.ModTime.Unix() != 1_700_000_000 {
			t.Errorf("%s: mode %o, owner %d, time %s", h.Name, h.Mode, h.Uid, h.ModTime)
		}
		files[h.Name] = string(text)
	}
	for _, says := range []string{"\nversion: 1.2.3-rc.1\n", "\nappVersion: \"1.2.3-rc.1\"\n", "\n  cniscope.dev/image-digest: sha256:abab"} {
		if !strings.Contains(files["cniscope/Chart.yaml"], says) {
			t.Errorf("Chart.yaml does not say %q:\n%s", says, files["cniscope/Chart.yaml"])
		}
	}
	for _, name := range []string{"cniscope/values.yaml", "cniscope/values.schema.json", "cniscope/templates/daemonset.yaml", "cniscope/profiles/gke.yaml", "cniscope/files/alerts.yaml"} {
		if files[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
}

// A source tree's manifest names cniscope:devel.
func TestTheManifestNamesTheImageOfTheRelease(t *testing.T) {
	r := &release{Version: "v1.2.3", Number: "1.2.3", Root: "../..", Out: t.TempDir()}
	if err := staticManifest(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.Out, "cniscope_1.2.3_kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`image: "ghcr.io/cniscope/cniscope:v1.2.3"`, `/version: "1.2.3"`, `/chart: "cniscope-1.2.3"`} {
		if !strings.Contains(string(text), name) {
			t.Errorf("the manifest does not contain %s", name)
		}
	}
	if found := regexp.MustCompile(`.*devel\b.*`).Find(text); found != nil {
		t.Errorf("the manifest names the development version: %s", found)
	}
	for _, other := range []string{"", strings.ReplaceAll(string(text), "1.2.3", "0.2.0")} {
		if _, err := r.manifestOf([]byte(other)); err == nil {
			t.Error("a manifest of another version is accepted")
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
