package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cniscope/cniscope/configs/image"
)

const imageName = "ghcr.io/cniscope/cniscope"

func containerImage(_ context.Context, r *release) error {
	err := r.create("cniscope_"+r.Number+"_image.tar.gz", func(w io.Writer) error {
		zip := gzip.NewWriter(w)
		digest, err := image.Build(zip, os.DirFS(r.Work), image.Spec{
			Name: imageName + ":" + r.Version, Version: r.Version, Commit: r.Commit, Time: r.Time, Architectures: architectures,
		})
		r.ImageDigest = digest
		return errors.Join(err, zip.Close())
	})
	if err == nil {
		fmt.Printf("      %s@%s\n", imageName, r.ImageDigest)
	}
	return err
}
