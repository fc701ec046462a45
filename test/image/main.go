// Command image builds the container image of cniscope, as the Dockerfile says it, for
// every architecture, without Docker: an OCI image layout as a tar archive, which
// `ctr images import`, `podman load` and `skopeo copy oci-archive:FILE` take.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func main() {
	name := flag.String("name", "ghcr.io/cniscope/cniscope:latest", "name and tag of the image")
	dir := flag.String("context", ".", "folder of the Dockerfile and of what it copies")
	archs := flag.String("arch", "amd64,arm64", "architectures, as Go calls them")
	out := flag.String("o", "bin/cniscope-image.tar", "file to write")
	flag.Parse()
	if err := run(*dir, *name, *out, strings.Split(*archs, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(dir, name, out string, archs []string) (err error) {
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() {
		if closing := file.Close(); err == nil {
			err = closing
		}
	}()
	return build(file, dir, name, archs)
}

// build writes the image's archive.
func build(w io.Writer, dir, name string, archs []string) error {
	l, err := newLayout(w)
	if err != nil {
		return err
	}
	var images []ocispec.Descriptor
	for _, arch := range archs {
		r, err := open(filepath.Join(dir, "Dockerfile"), arch)
		if err != nil {
			return err
		}
		image, err := l.image(r, dir, arch)
		if err != nil {
			return err
		}
		images = append(images, image)
	}
	return l.close(name, images)
}

func open(dockerfile, arch string) (recipe, error) {
	f, err := os.Open(dockerfile)
	if err != nil {
		return recipe{}, err
	}
	defer f.Close()
	r, err := readRecipe(f, arch)
	if err != nil {
		return recipe{}, fmt.Errorf("%s: %w", dockerfile, err)
	}
	return r, nil
}
