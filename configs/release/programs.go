package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"
)

// shipped lists programs; cniscope-reader is only in the image.
var shipped = []string{"./plugin/cniscope", "./plugin/cniscope-reader"}

// programs sets version data by name, because what Go records depends on the clone's tags.
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

func (r *release) ldflags() string {
	return fmt.Sprintf("-s -w -X main.linked=%s -X main.commit=%s -X main.date=%s", r.Version, r.Commit,
		r.Time.Format(time.RFC3339))
}

func share(ctx context.Context, r *release) error {
	_, err := r.command(ctx, r.environment(), r.program(runtime.GOARCH), "docs", r.shared())
	return err
}
