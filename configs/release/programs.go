package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"
)

// shipped are the programs that a release is of. Only cniscope is for a node by itself; the reader is in the image.
var shipped = []string{"./plugin/cniscope", "./plugin/cniscope-reader"}

// programs builds the programs for each architecture. What git knows is linked by name: what Go
// itself notes of the repository depends on which tags a clone has.
func programs(ctx context.Context, r *release) error {
	for _, arch := range architectures {
		fmt.Printf("      linux/%s (from nothing some minutes, else seconds)\n", arch)
		_, err := r.command(ctx, r.environment("GOARCH="+arch), "go", append([]string{
			"build", "-trimpath", "-buildvcs=false", "-ldflags", r.ldflags(), "-o", filepath.Dir(r.program(arch)) + "/",
		}, shipped...)...)
		if err != nil {
			return err
		}
		if err := r.createFrom("cniscope_"+r.Number+"_linux_"+arch, r.program(arch)); err != nil {
			return err
		}
	}
	return nil
}

// ldflags link in what git knows.
func (r *release) ldflags() string {
	return fmt.Sprintf("-s -w -X main.linked=%s -X main.commit=%s -X main.date=%s", r.Version, r.Commit, r.Time.Format(time.RFC3339))
}

// share has the program of this machine's architecture write man pages and completions.
func share(ctx context.Context, r *release) error {
	_, err := r.command(ctx, r.environment(), r.program(runtime.GOARCH), "docs", r.shared())
	return err
}
