package main

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"

	"github.com/cniscope/cniscope/configs/image"
)

// containerImage packs the image for all architectures as one OCI layout.
func containerImage(_ context.Context, r *release) error {
	return r.create("cniscope_"+r.Number+"_image.tar.gz", func(w io.Writer) error {
		zip := gzip.NewWriter(w)
		return errors.Join(image.Build(zip, os.DirFS(r.Work), "ghcr.io/cniscope/cniscope:"+r.Version, architectures), zip.Close())
	})
}
