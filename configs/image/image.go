// Package image builds the container image of cniscope without Docker, as the Dockerfile
// beside it says: an OCI image layout as a tar archive, which `ctr images import`,
// `podman load` and `skopeo copy oci-archive:FILE` take.
package image

import (
	"bytes"
	_ "embed" // the Dockerfile
	"fmt"
	"io"
	"io/fs"
	"maps"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

//go:embed Dockerfile
var dockerfile []byte

// Spec says what the image is of.
type Spec struct {
	Name            string // with its tag, as registries have it
	Version, Commit string // labels of the image, if they are known
	Time            time.Time
	Architectures   []string // as Go calls them
}

// labels are those that the Dockerfile cannot know.
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

// Build writes the archive of the image, and returns the digest by which it is pulled for any of
// its architectures. Context holds what the Dockerfile copies: bin/linux-ARCH/cniscope and cniscope-reader. The same
// input gives the same bytes.
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
