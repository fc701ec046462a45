// Package learned keeps a node's baseline and digest key over restarts.
package learned

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/disk"
)

const (
	fileName = "baseline.json"
	keyName  = "baseline.key"
	keySize  = 32
)

// Store keeps a baseline; the zero value keeps nothing.
type Store struct {
	dir   string
	log   *slog.Logger
	key   []byte
	fresh bool
	// writing is full during a write: a disk may hang.
	writing chan struct{}
}

// Open reads or makes the key in Options.BaselineFolder.
func Open(o config.Options, log *slog.Logger) Store {
	s := Store{dir: o.BaselineFolder(), log: log, writing: make(chan struct{}, 1)}
	s.key, s.fresh = keyIn(s.dir)
	return s
}

// Keeps reports whether there is a directory.
func (s Store) Keeps() bool { return s.dir != "" }

// Key returns the key for configuration digests.
func (s Store) Key() []byte { return s.key }

// Load returns the saved baseline, or an empty one on errors.
func (s Store) Load() *baseline.Document {
	empty := (&baseline.Book{}).Document()
	if s.dir == "" {
		return empty
	}
	d, err := Read(s.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return empty
	case err != nil:
		s.log.Warn("baseline unreadable, starting again", "file", filepath.Join(s.dir, fileName), "reason", err)
		return empty
	}
	if s.fresh {
		d.Unconfigured()
	}
	s.log.Info("baseline read", "file", filepath.Join(s.dir, fileName), "plugins_and_commands", len(d.Entries))
	return d
}

// Save writes a baseline, and logs a failure or timeout.
func (s Store) Save(ctx context.Context, d *baseline.Document) {
	if s.dir == "" || len(d.Entries) == 0 {
		return
	}
	written := make(chan error, 1)
	select {
	case s.writing <- struct{}{}:
		go func() {
			written <- errors.Join(keepKey(s.dir, s.key), Write(s.dir, d))
			<-s.writing
		}()
	case <-ctx.Done():
	}
	var err error
	select {
	case err = <-written:
	case <-ctx.Done():
		err = errors.New("the disk does not answer")
	}
	if err != nil {
		s.log.Warn("baseline not saved", "dir", s.dir, "reason", err)
	}
}

// Read reads a directory's baseline. The error wraps fs.ErrNotExist if there is none.
func Read(dir string) (*baseline.Document, error) {
	data, err := readOwn(dir, fileName, baseline.MaxBytes)
	if err != nil {
		return nil, err
	}
	return baseline.Parse(data)
}

// Write replaces a directory's baseline atomically.
func Write(dir string, d *baseline.Document) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return writeOwn(disk.System(), dir, fileName, append(data, '\n'))
}

// keyIn returns the saved key, or a fresh one. It never leaves the node: a key makes digests searchable.
func keyIn(dir string) (key []byte, fresh bool) {
	if dir != "" {
		if key, err := readOwn(dir, keyName, keySize); err == nil && len(key) == keySize {
			return key, false
		}
	}
	key = make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails
	return key, true
}

func keepKey(dir string, key []byte) error {
	if kept, err := readOwn(dir, keyName, keySize); err == nil && string(kept) == string(key) {
		return nil
	}
	return writeOwn(disk.System(), dir, keyName, key)
}

// readOwn reads up to most bytes. The error wraps fs.ErrNotExist without a file.
func readOwn(dir, name string, most int64) ([]byte, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err // private.Dir would make it
	}
	root, err := disk.System().Private(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return disk.ReadRegular(root, name, most)
}

// writeOwn replaces a file atomically, safe against a power cut once it returned nil.
func writeOwn(in disk.FS, dir, name string, data []byte) error {
	root, err := in.Private(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	fresh := name + ".new"
	if err := root.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // left by a killed process
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
