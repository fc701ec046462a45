package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"aead.dev/minisign"
	"golang.org/x/mod/semver"
)

var architectures = []string{"amd64", "arm64"}

type release struct {
	Version string    // v0.2.0
	Number  string    // 0.2.0
	Commit  string    // full, with "-dirty" for a draft with changes
	Time    time.Time // of the commit, in UTC; used for every file
	Notes   string    // this version's section of CHANGELOG.md
	Root    string    // source tree
	Work    string
	Out     string

	ImageDigest string // digest of the image's index, once built

	key           *minisign.PrivateKey // nil if nothing is signed
	platforms     []platform           // of kubectl's plugin
	modules       map[string]*module   // linked into the programs, by path
	pluginModules map[string]*module   // linked into kubectl's plugin
	goVersion     string
}

func (r *release) program(arch string) string {
	return filepath.Join(r.Work, "bin", "linux-"+arch, "cniscope")
}

func (r *release) shared() string { return filepath.Join(r.Work, "share") }

func (r *release) create(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(filepath.Join(r.Out, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil { // regardless of the umask
		return fmt.Errorf("%s: %w", name, err)
	}
	info, err := os.Stat(f.Name())
	if err != nil {
		return err
	}
	fmt.Printf("      %s  %.1f MB\n", name, float64(info.Size())/1e6)
	return nil
}

func (r *release) createFrom(name, file string) error {
	return r.create(name, func(w io.Writer) error {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
}

// environment returns our environment with fixed values for the variables that would change the output.
func (r *release) environment(more ...string) []string {
	fixed := []string{
		"LC_ALL=C", "TZ=UTC", "SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.Time.Unix(), 10),
		"CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off",
		"GOOS=linux", "GOAMD64=v1", "GOARM64=v8.0",
	}
	return append(append(os.Environ(), fixed...), more...)
}

func (r *release) command(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = r.Root, env
	out, err := cmd.Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimRight(string(out), "\n"), err
}

func prepare(ctx context.Context, version, root string, draft bool) (*release, error) {
	if err := checkVersion(version); err != nil {
		return nil, err
	}
	r := &release{Version: version, Number: strings.TrimPrefix(version, "v"), Root: root}
	text, err := r.command(ctx, os.Environ(), "git", "show", "-s", "--format=%H %ct", "HEAD")
	if err != nil {
		return nil, fmt.Errorf("a release is built from a commit: %w", err)
	}
	var seconds int64
	if _, err := fmt.Sscan(text, &r.Commit, &seconds); err != nil {
		return nil, fmt.Errorf("git show: %q: %w", text, err)
	}
	r.Time = time.Unix(seconds, 0).UTC()
	if err := r.checkTree(ctx, draft); err != nil {
		return nil, err
	}
	if err := r.readChangelog(draft); err != nil {
		return nil, err
	}
	if err := r.readKey(draft); err != nil {
		return nil, err
	}
	return r, r.checkTag(ctx, draft)
}

func checkVersion(version string) error {
	const form = "VERSION=v1.2.3, or v1.2.3-rc.1 for one before it"
	switch {
	case version == "":
		return fmt.Errorf("which version? Say %s", form)
	case semver.IsValid("v" + version):
		return fmt.Errorf("VERSION=%s is not a version: the v is missing: VERSION=v%s", version, version)
	case !semver.IsValid(version) || semver.Canonical(version) != version:
		return fmt.Errorf("VERSION=%s is not a version: say %s", version, form)
	}
	return nil
}

// checkTree rejects a changed tree, which is not reproducible. Ignored files count if Go would compile or embed them.
func (r *release) checkTree(ctx context.Context, draft bool) error {
	changes, err := r.command(ctx, os.Environ(), "git", "status", "--porcelain", "--untracked-files=normal")
	if err != nil {
		return err
	}
	ignored, err := r.command(ctx, os.Environ(), "git", "status", "--porcelain", "--ignored", "--", "plugin", "pkg",
		"configs")
	if err != nil {
		return err
	}
	for line := range strings.Lines(ignored + "\n") {
		if strings.HasPrefix(line, "!! ") {
			changes += "\n" + strings.TrimSpace(line)
		}
	}
	changes = strings.Trim(changes, "\n")
	switch {
	case changes == "":
		return nil
	case draft:
		r.Commit += "-dirty"
		fmt.Printf("draft: the tree has changes:\n%s\n", changes)
		return nil
	}
	return fmt.Errorf("the tree has uncommitted changes, so the build could not be reproduced:\n%s\ncommit or stash "+
		"them; DRAFT=1 builds with them, to try", changes)
}

// checkTag rejects a tag on another commit, and notes a missing one.
func (r *release) checkTag(ctx context.Context, draft bool) error {
	tagged, err := r.command(ctx, os.Environ(), "git", "rev-parse", "--verify", "--quiet",
		"refs/tags/"+r.Version+"^{commit}")
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		fmt.Printf("no tag %s yet: git tag -s %s %s, once this is what you want to release\n", r.Version, r.Version,
			r.Commit[:12])
	case tagged != strings.TrimSuffix(r.Commit, "-dirty") && !draft:
		return fmt.Errorf("the tag %s is commit %s, and this is %s: check that out, or choose another version; DRAFT=1 "+
			"builds it all the same, to try", r.Version, tagged[:12], r.Commit[:12])
	}
	return nil
}
