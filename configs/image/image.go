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

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

//go:embed Dockerfile
var dockerfile []byte

// Build writes the archive of the image, for each architecture (as Go calls it). Context
// holds what the Dockerfile copies: bin/linux-ARCH/cniscope. The same input gives the same
// bytes.
func Build(w io.Writer, context fs.FS, name string, archs []string) error {
	l, err := newLayout(w)
	if err != nil {
		return err
	}
	var images []ocispec.Descriptor
	for _, arch := range archs {
		r, err := readRecipe(bytes.NewReader(dockerfile), arch)
		if err != nil {
			return fmt.Errorf("configs/image/Dockerfile: %w", err)
		}
		image, err := l.image(r, context, arch)
		if err != nil {
			return err
		}
		images = append(images, image)
	}
	return l.close(name, images)
}
