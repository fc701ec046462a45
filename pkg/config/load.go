package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Source says where options come from.
type Source struct {
	// Base is what the file stands on: Default, or FromEnvironment.
	Base Options
	// Path is the file; empty where there is none.
	Path string
	// Optional says that a file that does not exist is the same as an empty one.
	Optional bool
	// Text is set on top of the file: what NRI's Configure handed over.
	Text string
}

// textName is what errors call the text of NRI's Configure.
const textName = "NRI configuration"

// Load reads the file and puts the text on top. The error is Problems where the
// options are wrong, and wraps the system's where the file cannot be read.
func (s Source) Load() (Options, error) {
	o := s.Base
	if s.Path != "" {
		data, err := readFile(s.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && s.Optional:
		case err != nil:
			return s.Base, fmt.Errorf("options: %w", err)
		default:
			if o, err = o.Overlay(s.Path, data); err != nil {
				return s.Base, err
			}
		}
	}
	if s.Text == "" {
		return o, nil
	}
	o, err := o.Overlay(textName, []byte(s.Text))
	if err != nil {
		return s.Base, err
	}
	return o, nil
}

// stillOptional reports whether the file may go on missing. One that was there
// may not vanish: an editor or a mount that is half done would switch everything
// back to the defaults.
func (s Source) stillOptional() bool {
	_, err := os.Stat(s.Path)
	return s.Optional && err != nil
}

// Load returns the options of a file on top of the defaults.
func Load(path string) (Options, error) {
	return Source{Base: Default(), Path: path}.Load()
}

// lookupTime bounds the lookup of names for a warning.
const lookupTime = 2 * time.Second

// Warnings returns which options are valid and still unwise, each with its place in the file.
// It looks up names, for lookupTime at most; ctx ends that.
func (s Source) Warnings(ctx context.Context, o Options) []Problem {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	var at positions
	if data, err := readFile(s.Path); err == nil {
		at = locate(data)
	}
	var all Problems
	for key, f := range o.unwise(ctx) {
		all = append(all, f.at(s.Path, at, key))
	}
	return all.sorted()
}
