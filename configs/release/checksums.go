package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func checksums(_ context.Context, r *release) error {
	artifacts, err := os.ReadDir(r.Out)
	if err != nil {
		return err
	}
	return r.create("checksums.txt", func(w io.Writer) error {
		for _, a := range artifacts {
			sum, err := sha256Of(filepath.Join(r.Out, a.Name()))
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%x  %s\n", sum, a.Name()); err != nil {
				return err
			}
		}
		return nil
	})
}

func sha256Of(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return sum.Sum(nil), err
}
