//go:build linux

package rig

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
)

const (
	// root holds a directory per place. It is short, because paths of unix sockets have up to 108 bytes.
	root = "/run/cniscope-rig"
	// marker is an environment variable with the place's directory, which all descendants inherit.
	marker = "CNISCOPE_RIG"
	// places bounds concurrent rigs; each has a /18.
	places = 64
)

// A kind is the purpose of a place.
type kind string

const (
	rigKind    kind = "r"
	jaegerKind kind = "j"
)

// A place is a directory below root, with a lock that the kernel releases at its owner's exit.
type place struct {
	dir  string
	n    int
	lock *os.File
	log  *slog.Logger
}

var placeName = regexp.MustCompile(`^([rj])([0-9]+)$`)

// claim sweeps dead owners' places, then takes the first free one that usable accepts.
func claim(k kind, usable func(n int) bool, log *slog.Logger) (*place, error) {
	release, err := lockRoot()
	if err != nil {
		return nil, err
	}
	defer release()
	if err := sweepStale(log); err != nil {
		return nil, err
	}
	if k == rigKind {
		if err := rememberHost(); err != nil {
			return nil, err
		}
	}
	for n := range places {
		dir := filepath.Join(root, string(k)+strconv.Itoa(n))
		if usable != nil && !usable(n) {
			continue
		}
		if err := os.Mkdir(dir, throughOnly); errors.Is(err, os.ErrExist) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("make a folder for the rig: %w", err)
		}
		lock, err := tryLock(dir)
		if err != nil {
			return nil, fmt.Errorf("lock the rig's folder: %w", err)
		}
		if _, err := fmt.Fprintln(lock, os.Getpid()); err != nil {
			return nil, fmt.Errorf("mark the rig's folder: %w", err)
		}
		return &place{dir: dir, n: n, lock: lock, log: log}, nil
	}
	return nil, fmt.Errorf("no free place for a rig in %s: %d are in use, or their subnets are routed on this host", root, places)
}

// release sweeps the place; the last rig restores the host.
func (p *place) release() error {
	unlock, err := lockRoot()
	if err != nil {
		return err
	}
	defer unlock()
	err = sweep(p.dir, p.log)
	p.lock.Close()
	return errors.Join(err, restoreHostIfLast(p.log))
}

// throughOnly is the mode of parents of root file systems, for pods with user namespaces.
const throughOnly = 0o711

// lockRoot serializes starting, closing and sweeping on this host.
func lockRoot() (func(), error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("a rig needs root: it makes namespaces, mounts and links")
	}
	if err := os.MkdirAll(root, throughOnly); err != nil {
		return nil, fmt.Errorf("make the folder of all rigs: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(root, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of all rigs: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

// tryLock locks a place, or fails with EWOULDBLOCK while its owner lives.
func tryLock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "owner"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func sweepStale(log *slog.Logger) error {
	dirs, err := placesOf(rigKind, jaegerKind)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		lock, err := tryLock(dir)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return fmt.Errorf("see whether %s is in use: %w", dir, err)
		}
		log.Info("an earlier rig was not closed: sweeping it", "dir", dir)
		err = sweep(dir, log)
		lock.Close()
		if err != nil {
			return err
		}
	}
	return restoreHostIfLast(log)
}

func placesOf(kinds ...kind) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("list the rigs: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		m := placeName.FindStringSubmatch(e.Name())
		if m != nil && slices.Contains(kinds, kind(m[1])) {
			dirs = append(dirs, filepath.Join(root, e.Name()))
		}
	}
	return dirs, nil
}
