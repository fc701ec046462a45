package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/disk"
	"github.com/cniscope/cniscope/pkg/private"
)

const (
	keyName = "baseline.key"
	keySize = 32
)

// readLearnt reads the baseline in a folder. It wraps fs.ErrNotExist where there is none.
func readLearnt(dir string) (*baseline.Document, error) {
	data, err := readOwn(dir, learntName, baseline.MaxBytes+1)
	if err != nil {
		return nil, err
	}
	return baseline.Parse(data)
}

func parseLearnt(r io.Reader) (*baseline.Document, error) {
	data, err := io.ReadAll(io.LimitReader(r, baseline.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	return baseline.Parse(data)
}

// writeLearnt replaces the baseline in a folder as a whole: after a crash there is the old one or the new one.
func writeLearnt(dir string, d *baseline.Document) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return writeOwn(disk.System{}, dir, learntName, append(data, '\n'))
}

// keyIn returns the key that is kept in a folder, or a fresh one. It never leaves the node: who knows a digest and the
// key can try what a configuration may hold.
func keyIn(dir string) (key []byte, fresh bool) {
	if dir != "" {
		if key, err := readOwn(dir, keyName, keySize+1); err == nil && len(key) == keySize {
			return key, false
		}
	}
	key = make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails
	return key, true
}

// keepKey writes a key down, unless it is.
func keepKey(dir string, key []byte) error {
	if kept, err := readOwn(dir, keyName, keySize+1); err == nil && string(kept) == string(key) {
		return nil
	}
	return writeOwn(disk.System{}, dir, keyName, key)
}

// readOwn reads a file of ours, most bytes of it. It wraps fs.ErrNotExist where there is none.
func readOwn(dir, name string, most int64) ([]byte, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err // private.Dir would make it
	}
	root, err := private.Dir(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if info, err := root.Lstat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file: remove it")
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// writeOwn replaces a file of ours as a whole. When it returns nil, a power cut does not bring the old file back.
func writeOwn(in disk.FS, dir, name string, data []byte) error {
	root, err := in.Private(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	fresh := name + ".new"
	if err := root.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // of one that was killed
	}
	f, err := root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = root.Rename(fresh, name)
	}
	if err != nil {
		_ = root.Remove(fresh)
		return err
	}
	return disk.SyncFolder(root, ".")
}
