// Package image builds cniscope's container image without Docker, as a tar archive of an OCI image layout for `ctr
// images import`, `podman load` and `skopeo copy oci-archive:FILE`.
package image

import (
	"io"
	"io/fs"
	"maps"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Spec describes an image.
type Spec struct {
	Name            string // with registry and tag
	Version, Commit string // empty if unknown
	Time            time.Time
	Architectures   []string // values of GOARCH
}

// config runs as root, which owns the sockets of containerd and NRI. By number: there is no /etc/passwd.
func (s Spec) config() ocispec.ImageConfig {
	labels := map[string]string{
		ocispec.AnnotationTitle:       "cniscope",
		ocispec.AnnotationDescription: "Traces of CNI calls: where the seconds of a pod's network setup went",
		ocispec.AnnotationSource:      "https://github.com/cniscope/cniscope",
		ocispec.AnnotationLicenses:    "Apache-2.0",
		ocispec.AnnotationVersion:     s.Version,
		ocispec.AnnotationRevision:    s.Commit,
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	return ocispec.ImageConfig{User: "0:0", Entrypoint: []string{"/cniscope"}, Cmd: []string{"run"}, Labels: labels}
}

// No process can read the memory of a program that its user cannot read.
var programs = []struct {
	name string
	mode int64
}{{"cniscope", 0o755}, {"cniscope-reader", 0o711}}

// Build writes the image archive and returns its index's digest. context holds bin/linux-ARCH/cniscope and
// cniscope-reader. The output is reproducible.
func Build(w io.Writer, context fs.FS, s Spec) (digest string, err error) {
	l, err := newLayout(w)
	if err != nil {
		return "", err
	}
	var images []ocispec.Descriptor
	for _, arch := range s.Architectures {
		image, err := l.image(s, context, arch)
		if err != nil {
			return "", err
		}
		images = append(images, image)
	}
	return l.close(s.Name, images)
}
