// Command release builds a release of cniscope into dist/VERSION (docs/contributing/release.md). Except for the
// signature, the same commit and Go version give the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

func run(ctx context.Context) error {
	version := flag.String("version", "", "version to build, such as v0.2.0")
	root := flag.String("root", ".", "top of the source tree")
	dist := flag.String("dist", "dist", "folder that gets a folder of the version's name")
	draft := flag.Bool("draft", false, "build to try it: changed files, and a version without tag or changelog, are "+
		"accepted")
	alone := flag.Bool("packages", false, "build deb and rpm alone, for their tests")
	only := flag.String("platforms", "", "the plugin of kubectl for these alone, as linux/amd64,windows/amd64: for tests")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	source, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	target, err := filepath.Abs(*dist)
	if err != nil {
		return err
	}
	r, err := prepare(ctx, *version, source, *draft)
	if err != nil {
		return err
	}
	if r.platforms, err = platformsOf(*only); err != nil {
		return err
	}
	all := steps()
	if *alone {
		all = slices.DeleteFunc(all, func(s step) bool { return !s.packages })
	}
	return r.buildInto(ctx, target, all)
}

type step struct {
	name     string
	build    func(context.Context, *release) error
	packages bool // needed for deb and rpm packages, too
}

// Later steps use the output of earlier ones.
func steps() []step {
	return []step{
		{name: "programs", build: programs, packages: true},
		{name: "man pages and completions", build: share, packages: true},
		{name: "licenses of others", build: notices, packages: true},
		{name: "tarballs", build: tarballs},
		{name: "deb and rpm", build: packages, packages: true},
		{name: "plugin of kubectl", build: plugin},
		{name: "krew manifest", build: krew},
		{name: "container image", build: containerImage},
		{name: "Helm chart", build: chart},
		{name: "static manifest", build: staticManifest},
		{name: "SBOM", build: sbom},
		{name: "release notes", build: notes},
		{name: "checksums", build: checksums},
		{name: "signature", build: signature},
	}
}

// buildInto builds beside dist, so that a failure leaves the previous release.
func (r *release) buildInto(ctx context.Context, dist string, all []step) (err error) {
	start := time.Now()
	free, err := lock(dist)
	if err != nil {
		return err
	}
	defer free()
	staging := filepath.Join(dist, "."+r.Version+".building")
	if err := os.RemoveAll(staging); err != nil { // of a killed build
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	r.Out, r.Work = filepath.Join(staging, "out"), filepath.Join(staging, "work")
	for _, dir := range []string{r.Out, r.Work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for i, s := range all {
		fmt.Printf("[%2d/%d %5s] %s\n", i+1, len(all), time.Since(start).Round(time.Second), s.name)
		if err := s.build(ctx, r); err != nil {
			return stopped(ctx, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	if err := os.Chmod(r.Out, 0o755); err != nil { // regardless of the umask
		return err
	}
	if err := publish(r.Out, filepath.Join(dist, r.Version), staging); err != nil {
		return err
	}
	fmt.Printf("%s is in %s (%s)\n", r.Version, filepath.Join(dist, r.Version), time.Since(start).Round(time.Second))
	return nil
}

// stopped reports an interrupt instead of the failure it caused: Ctrl-C also stops running commands, possibly first.
func stopped(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return errors.New("stopped; nothing was written to dist")
	case <-time.After(time.Second):
		return err
	}
}

func publish(out, place, staging string) error {
	former := filepath.Join(staging, "former")
	if err := os.Rename(place, former); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	err := os.Rename(out, place)
	if err == nil {
		return nil
	}
	if back := os.Rename(former, place); back != nil && !errors.Is(back, os.ErrNotExist) {
		err = errors.Join(err, back)
	}
	return err
}

func lock(dist string) (free func(), err error) {
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return nil, err
	}
	d, err := os.Open(dist)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("another build is writing to %s: wait for it, or give DIST=another folder", dist)
	}
	return func() { _ = d.Close() }, nil
}
