// Package image builds cniscope's container image without Docker, as a tar archive of an OCI image layout for `ctr
// images import`, `podman load` and `skopeo copy oci-archive:FILE`.
package image

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

//go:embed Dockerfile
var dockerfile []byte

// Spec describes an image.
type Spec struct {
	Name            string // with registry and tag
	Version, Commit string // empty if unknown
	Time            time.Time
	Architectures   []string // values of GOARCH
}

func (s Spec) labels() map[string]string {
	labels := map[string]string{}
	if s.Version != "" {
		labels[ocispec.AnnotationVersion] = s.Version
	}
	if s.Commit != "" {
		labels[ocispec.AnnotationRevision] = s.Commit
	}
	return labels
}

// Build writes the image archive and returns its index's digest. context holds bin/linux-ARCH/cniscope and
// cniscope-reader. The output is reproducible.
func Build(w io.Writer, context fs.FS, s Spec) (digest string, err error) {
	l, err := newLayout(w)
	if err != nil {
		return "", err
	}
	var images []ocispec.Descriptor
	for _, arch := range s.Architectures {
		r, err := readRecipe(bytes.NewReader(dockerfile), arch)
		if err != nil {
			return "", fmt.Errorf("configs/image/Dockerfile: %w", err)
		}
		maps.Copy(r.config.Labels, s.labels())
		if !s.Time.IsZero() {
			r.created = &s.Time
		}
		image, err := l.image(r, context, arch)
		if err != nil {
			return "", err
		}
		images = append(images, image)
	}
	return l.close(s.Name, images)
}
