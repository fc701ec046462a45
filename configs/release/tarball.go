package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

func tarballs(ctx context.Context, r *release) error {
	for _, arch := range architectures {
		if err := ctx.Err(); err != nil {
			return err
		}
		folder := fmt.Sprintf("cniscope_%s_linux_%s", r.Number, arch)
		if err := r.archived(folder+".tar.gz", func(a archive) error { return a.node(folder, arch) }); err != nil {
			return err
		}
	}
	return nil
}

// archived creates a compressed archive.
func (r *release) archived(name string, fill func(archive) error) error {
	return r.create(name, func(w io.Writer) error {
		zip := gzip.NewWriter(w)
		a := archive{Writer: tar.NewWriter(zip), release: r}
		return errors.Join(fill(a), a.Close(), zip.Close())
	})
}

func (a archive) node(folder, arch string) error {
	r := a.release
	for _, f := range []struct {
		from, to string
		mode     int64
	}{
		{r.program(arch), "bin/cniscope", 0o755},
		{"configs/cniscope.toml", "etc/cniscope/cniscope.toml", 0o600},
		{"configs/systemd/cniscope.service", "etc/systemd/system/cniscope.service", 0o644},
		{"LICENSE", "LICENSE", 0o644},
		{"README.md", "README.md", 0o644},
		{"CHANGELOG.md", "CHANGELOG.md", 0o644},
		{r.noticesFile(), "THIRD-PARTY-NOTICES.txt", 0o644},
	} {
		if !filepath.IsAbs(f.from) {
			f.from = filepath.Join(r.Root, f.from)
		}
		if err := a.file(f.from, path.Join(folder, f.to), f.mode); err != nil {
			return err
		}
	}
	return a.tree(r.shared(), path.Join(folder, "share"), nil)
}

// archive writes a reproducible tar file.
type archive struct {
	*tar.Writer
	release *release
}

func (a archive) file(from, to string, mode int64) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return a.content(to, mode, data)
}

func (a archive) content(to string, mode int64, data []byte) error {
	header := &tar.Header{Name: to, Mode: mode, Size: int64(len(data)), ModTime: a.release.Time, Format: tar.FormatPAX}
	if err := a.WriteHeader(header); err != nil {
		return err
	}
	_, err := a.Write(data)
	return err
}

// tree adds files in order of name; changed is content by path.
func (a archive) tree(dir, to string, changed map[string][]byte) error {
	return filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is no file, and an archive holds nothing else", file)
		}
		below, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		if data := changed[below]; data != nil {
			return a.content(path.Join(to, below), 0o644, data)
		}
		return a.file(file, path.Join(to, below), 0o644)
	})
}
