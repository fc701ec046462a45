package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "crypto/sha256" // go-digest looks hashes up by name
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// layout is a reproducible tar archive.
type layout struct {
	tar  *tar.Writer
	have map[digest.Digest]bool
}

func newLayout(w io.Writer) (*layout, error) {
	l := &layout{tar: tar.NewWriter(w), have: map[digest.Digest]bool{}}
	version, err := json.Marshal(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	if err != nil {
		return nil, err
	}
	return l, l.file(ocispec.ImageLayoutFile, 0o644, version)
}

func (l *layout) file(name string, mode int64, data []byte) error {
	return write(l.tar, name, mode, data)
}

func write(w *tar.Writer, name string, mode int64, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

func (l *layout) blob(mediaType string, data []byte) (ocispec.Descriptor, error) {
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	if l.have[d.Digest] {
		return d, nil
	}
	l.have[d.Digest] = true
	return d, l.file(filepath.Join(ocispec.ImageBlobsDir, string(d.Digest.Algorithm()), d.Digest.Encoded()), 0o644, data)
}

func (l *layout) object(mediaType string, v any) (ocispec.Descriptor, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return l.blob(mediaType, data)
}

func (l *layout) image(s Spec, context fs.FS, arch string) (ocispec.Descriptor, error) {
	var plain bytes.Buffer
	files := tar.NewWriter(&plain)
	for _, p := range programs {
		data, err := fs.ReadFile(context, "bin/linux-"+arch+"/"+p.name)
		if err != nil {
			return ocispec.Descriptor{}, fmt.Errorf("a file of the image: %w (`make binaries` builds it)", err)
		}
		if err := write(files, p.name, p.mode, data); err != nil {
			return ocispec.Descriptor{}, err
		}
	}
	if err := files.Close(); err != nil {
		return ocispec.Descriptor{}, err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(plain.Bytes()); err != nil {
		return ocispec.Descriptor{}, err
	}
	if err := zip.Close(); err != nil {
		return ocispec.Descriptor{}, err
	}
	layer, err := l.blob(ocispec.MediaTypeImageLayerGzip, packed.Bytes())
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	platform := ocispec.Platform{OS: "linux", Architecture: arch}
	var created *time.Time
	if !s.Time.IsZero() {
		created = &s.Time
	}
	config, err := l.object(ocispec.MediaTypeImageConfig, ocispec.Image{
		Created:  created,
		Platform: platform,
		Config:   s.config(),
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(plain.Bytes())}},
	})
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	manifest, err := l.object(ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ocispec.MediaTypeImageManifest,
		Config:    config,
		Layers:    []ocispec.Descriptor{layer},
	})
	manifest.Platform = &platform
	return manifest, err
}

func (l *layout) close(name string, images []ocispec.Descriptor) (string, error) {
	all, err := l.object(ocispec.MediaTypeImageIndex, ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ocispec.MediaTypeImageIndex,
		Manifests: images,
	})
	if err != nil {
		return "", err
	}
	// containerd reads the first annotation, other tools the second.
	all.Annotations = map[string]string{"io.containerd.image.name": name, ocispec.AnnotationRefName: name}
	index, err := json.Marshal(ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ocispec.MediaTypeImageIndex,
		Manifests: []ocispec.Descriptor{all},
	})
	if err != nil {
		return "", err
	}
	if err := l.file(ocispec.ImageIndexFile, 0o644, index); err != nil {
		return "", err
	}
	return string(all.Digest), l.tar.Close()
}
