package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const pluginName = "kubectl-cniscope"

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

func platforms() []platform {
	return []platform{
		{"darwin", "amd64"},
		{"darwin", "arm64"},
		{"linux", "amd64"},
		{"linux", "arm64"},
		{"windows", "amd64"},
		{"windows", "arm64"},
	}
}

// platformsOf parses a list such as "linux/amd64,windows/amd64"; an empty list means all platforms.
func platformsOf(list string) (chosen []platform, err error) {
	if list == "" {
		return platforms(), nil
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(platforms(), func(p platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("-platforms %s: there is %v", name, platforms())
		}
		chosen = append(chosen, platforms()[i])
	}
	return chosen, nil
}

func (p platform) executable() string {
	if p.os == "windows" {
		return pluginName + ".exe"
	}
	return pluginName
}

// archive returns a file name. krew unpacks both kinds.
func (r *release) archive(p platform) string {
	ending := ".tar.gz"
	if p.os == "windows" {
		ending = ".zip"
	}
	return fmt.Sprintf("%s_%s_%s_%s%s", pluginName, r.Number, p.os, p.arch, ending)
}

func plugin(ctx context.Context, r *release) (err error) {
	var all []built
	for _, p := range r.platforms {
		fmt.Printf("      %s (from nothing some minutes, else seconds)\n", p)
		one := built{r.pluginProgram(p), "./plugin/" + pluginName, p.os, p.arch}
		if _, err := r.command(ctx, r.environment("GOOS="+p.os, "GOARCH="+p.arch), "go", "build", "-trimpath",
			"-buildvcs=false",
			"-ldflags", r.ldflags(), "-o", one.file, one.of); err != nil {
			return err
		}
		all = append(all, one)
	}
	if r.pluginModules, _, err = r.linked(ctx, all); err != nil {
		return err
	}
	if err := r.notice(r.pluginNotices(), r.pluginModules); err != nil {
		return err
	}
	for _, p := range r.platforms {
		if p.os == "windows" {
			err = r.create(r.archive(p), func(w io.Writer) error { return r.pluginZip(w, p) })
		} else {
			err = r.archived(r.archive(p), func(a archive) error { return a.plugin(p) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *release) pluginProgram(p platform) string {
	return filepath.Join(r.Work, "bin", p.os+"-"+p.arch, p.executable())
}

func (r *release) pluginNotices() string {
	return filepath.Join(r.Work, "THIRD-PARTY-NOTICES-"+pluginName+".txt")
}

type packed struct {
	from, to string
	mode     os.FileMode
}

func (r *release) pluginPacked(p platform) []packed {
	return []packed{
		{r.pluginProgram(p), p.executable(), 0o755},
		{filepath.Join(r.Root, "LICENSE"), "LICENSE", 0o644},
		{r.pluginNotices(), "THIRD-PARTY-NOTICES.txt", 0o644},
	}
}

func (a archive) plugin(p platform) error {
	for _, f := range a.release.pluginPacked(p) {
		if err := a.file(f.from, f.to, int64(f.mode)); err != nil {
			return err
		}
	}
	return nil
}

// pluginZip contains the program twice, because kubectl completes through a second name.
func (r *release) pluginZip(w io.Writer, p platform) error {
	z := zip.NewWriter(w)
	add := func(name string, mode os.FileMode, data []byte) error {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: r.Time}
		header.SetMode(mode)
		out, err := z.CreateHeader(header)
		if err == nil {
			_, err = out.Write(data)
		}
		return err
	}
	for _, f := range r.pluginPacked(p) {
		data, err := os.ReadFile(f.from)
		if err == nil {
			err = add(f.to, f.mode, data)
		}
		if err != nil {
			return err
		}
	}
	const completes = "@echo off\r\nkubectl-cniscope.exe __complete %*\r\n"
	return errors.Join(add("kubectl_complete-cniscope.cmd", 0o755, []byte(completes)), z.Close())
}

func (r *release) pluginFiles() (files []cdx.Component, err error) {
	for _, p := range r.platforms {
		file, err := programFile(fmt.Sprintf("%s_%s_%s_%s", pluginName, r.Number, p.os, p.arch), r.pluginProgram(p))
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}
