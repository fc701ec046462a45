// Command build writes cniscope's container image to a file.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/cniscope/cniscope/configs/image"
)

func main() {
	name := flag.String("name", "ghcr.io/cniscope/cniscope:latest", "name and tag of the image")
	dir := flag.String("context", ".", "folder that holds bin/linux-ARCH/cniscope")
	archs := flag.String("arch", "amd64,arm64", "architectures, as Go calls them")
	out := flag.String("o", "bin/cniscope-image.tar", "file to write")
	flag.Parse()
	if err := run(*dir, *name, *out, strings.Split(*archs, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(dir, name, out string, archs []string) error {
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	_, err = image.Build(file, os.DirFS(dir), image.Spec{Name: name, Architectures: archs})
	return errors.Join(err, file.Close())
}
