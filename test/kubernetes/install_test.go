//go:build linux

package kubernetes

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/chart"
	"github.com/cniscope/cniscope/test/harness"
)

// What these tests install: the working tree's, or what `make release` has written to the directory $CNISCOPE_RELEASE.
var (
	imageName, imageArchive, pluginFile string

	manifestFile = "../../examples/kubernetes/cniscope.yaml"
	chartFile    string // empty: the directory of the chart
)

func prepare(ctx context.Context, dir string) (err error) {
	release := os.Getenv("CNISCOPE_RELEASE")
	if release == "" {
		if imageName, err = named(manifestFile); err != nil {
			return err
		}
		return buildImage(ctx, dir)
	}
	plugin := ""
	for pattern, file := range map[string]*string{
		"cniscope_*_kubernetes.yaml": &manifestFile, "cniscope-*.tgz": &chartFile, "cniscope_*_image.tar.gz": &imageArchive,
		"kubectl-cniscope_*_linux_" + runtime.GOARCH + ".tar.gz": &plugin,
	} {
		found, err := filepath.Glob(filepath.Join(release, pattern))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("%s has %d files %s, not one: %w", release, len(found), pattern, err)
		}
		*file = found[0]
	}
	pluginFile = filepath.Join(dir, "kubectl-cniscope")
	if err := unpack(ctx, plugin, dir, "kubectl-cniscope"); err != nil {
		return err
	}
	imageName, err = named(manifestFile)
	return err
}

func helmOf(t testing.TB) *chart.Helm {
	t.Helper()
	h := chart.New(t)
	if chartFile != "" {
		h.Chart = chartFile
	}
	return h
}

func unpack(ctx context.Context, archive, dir string, files ...string) error {
	if out, err := exec.CommandContext(ctx, "tar", append([]string{"-xf", archive, "-C", dir}, files...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w\n%s", archive, err, out)
	}
	return nil
}

// Chart and manifest name the image of the archive, whose program accepts their options.
func TestChartManifestAndImageFit(t *testing.T) {
	harness.Root(t)
	ctx := harness.Context(t)
	name, program := inArchive(ctx, t)
	manifest := harness.Must(os.ReadFile(manifestFile))(t)
	for what, rendering := range map[string]string{
		"the chart":    harness.Must(helmOf(t).Template(ctx, "cniscope", "cniscope"))(t),
		"the manifest": string(manifest),
	} {
		harness.Check(t, fits(ctx, t, rendering, name, program))
		for from, to := range map[string]string{name: name + "-older", "[control]": "[controls]"} {
			if err := fits(ctx, t, strings.ReplaceAll(rendering, from, to), name, program); err == nil || !strings.Contains(err.Error(), strings.Trim(to, "[]")) {
				t.Errorf("%s with %s in place of %s: %v", what, to, from, err)
			}
		}
	}
}

func fits(ctx context.Context, t *testing.T, rendering, image, program string) (failed error) {
	t.Helper()
	all := harness.Must(chart.Objects(rendering))(t)
	containers, options := 0, 0
	for _, o := range all {
		for _, c := range o.List("spec", "template", "spec", "containers") {
			if containers++; c.Text("image") != image {
				failed = errors.Join(failed, fmt.Errorf("container %s is of image %s, and the image is %s", c.Text("name"), c.Text("image"), image))
			}
		}
		text := o.Text("data", "cniscope.toml")
		if text == "" {
			continue
		}
		options++
		file := filepath.Join(t.TempDir(), "cniscope.toml")
		harness.Check(t, os.WriteFile(file, []byte(text), 0o600))
		if out, err := exec.CommandContext(ctx, program, "config", "check", file).CombinedOutput(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("the program of the image refuses the options: %w\n%s", err, out))
		}
	}
	if containers != 2 || options != 1 {
		t.Fatalf("%d containers, %d files of options", containers, options)
	}
	return failed
}

// inArchive returns the image's name, and its program for this machine, from the OCI layout.
func inArchive(ctx context.Context, t *testing.T) (name, program string) {
	t.Helper()
	dir := t.TempDir()
	harness.Check(t, unpack(ctx, imageArchive, dir))
	var index struct {
		Manifests []struct{ Annotations map[string]string }
	}
	harness.Check(t, json.Unmarshal(harness.Must(os.ReadFile(filepath.Join(dir, "index.json")))(t), &index))
	harness.Equal(t, len(index.Manifests), 1, "images")
	layers := harness.Must(filepath.Glob(filepath.Join(dir, "blobs", "sha256", "*")))(t)
	for _, layer := range layers {
		program = filepath.Join(t.TempDir(), "cniscope")
		if unpack(ctx, layer, filepath.Dir(program), "cniscope") != nil {
			continue // no layer
		}
		file := harness.Must(elf.Open(program))(t)
		_ = file.Close()
		if (file.Machine == elf.EM_X86_64) == (runtime.GOARCH == "amd64") {
			return index.Manifests[0].Annotations["io.containerd.image.name"], program
		}
	}
	t.Fatal("the image has no program for this machine")
	return "", ""
}
