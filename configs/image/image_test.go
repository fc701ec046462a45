package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const name = "registry.example/cniscope:v9"

func contents(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = data
	}
}

func read[T any](t *testing.T, files map[string][]byte, file string) (v T) {
	t.Helper()
	data, ok := files[file]
	if !ok {
		t.Fatalf("no %s in the layout", file)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func blob(d ocispec.Descriptor) string { return "blobs/sha256/" + d.Digest.Encoded() }

func built(t *testing.T) []byte {
	t.Helper()
	context := fstest.MapFS{
		"bin/linux-amd64/cniscope":        {Data: []byte("program for amd64")},
		"bin/linux-arm64/cniscope":        {Data: []byte("program for arm64")},
		"bin/linux-amd64/cniscope-reader": {Data: []byte("reader for amd64")},
		"bin/linux-arm64/cniscope-reader": {Data: []byte("reader for arm64")},
	}
	var archive bytes.Buffer
	made := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	digest, err := Build(&archive, context, Spec{Name: name, Version: "v9", Commit: "c0ffee", Time: made, Architectures: []string{"amd64", "arm64"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := contents(t, bytes.NewReader(archive.Bytes()))["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")]; !ok {
		t.Errorf("the layout does not hold the image that it is said to be, %s", digest)
	}
	return archive.Bytes()
}

func TestImageHoldsTheProgramForEachArchitecture(t *testing.T) {
	files := contents(t, bytes.NewReader(built(t)))
	top := read[ocispec.Index](t, files, "index.json").Manifests
	if len(top) != 1 || top[0].Annotations["io.containerd.image.name"] != name {
		t.Fatalf("the layout holds %+v, want one image called %s", top, name)
	}
	var archs []string
	for _, d := range read[ocispec.Index](t, files, blob(top[0])).Manifests {
		archs = append(archs, d.Platform.Architecture)
		manifest := read[ocispec.Manifest](t, files, blob(d))
		config := read[ocispec.Image](t, files, blob(manifest.Config))
		want := ocispec.ImageConfig{
			User: "0:0", Entrypoint: []string{"/cniscope"}, Cmd: []string{"run"}, Labels: config.Config.Labels,
		}
		if config.Architecture != d.Platform.Architecture || !reflect.DeepEqual(config.Config, want) {
			t.Errorf("%s: the configuration is %+v", d.Platform.Architecture, config)
		}
		for label, want := range map[string]string{"licenses": "Apache-2.0", "version": "v9", "revision": "c0ffee"} {
			if got := config.Config.Labels["org.opencontainers.image."+label]; got != want {
				t.Errorf("the label %s is %q, want %q", label, got, want)
			}
		}
		if config.Created == nil || config.Created.Format(time.RFC3339) != "2026-11-22T08:00:00Z" {
			t.Errorf("it was made %v", config.Created)
		}
		layer, err := gzip.NewReader(bytes.NewReader(files[blob(manifest.Layers[0])]))
		if err != nil {
			t.Fatal(err)
		}
		inside := contents(t, layer)
		arch := d.Platform.Architecture
		if len(inside) != 2 || string(inside["cniscope"]) != "program for "+arch || string(inside["cniscope-reader"]) != "reader for "+arch {
			t.Errorf("%s: the files are %q", d.Platform.Architecture, inside)
		}
	}
	if want := []string{"amd64", "arm64"}; !reflect.DeepEqual(archs, want) {
		t.Errorf("the image is for %v, want %v", archs, want)
	}
}

func TestSameInputGivesTheSameBytes(t *testing.T) {
	if !bytes.Equal(built(t), built(t)) {
		t.Error("two builds of the same differ")
	}
}
