package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cniscope/cniscope/configs"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers deb
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers rpm
)

type format struct {
	name  string
	file  string            // name, formatted with version and architecture
	archs map[string]string // names of architectures, by GOARCH
	zsh   string            // completion directory
	// Scripts in nfpm/.
	preInstall, postInstall, preRemove, postRemove string
}

func formats() []format {
	return []format{
		{
			name: "deb", file: "cniscope_%s_%s.deb", archs: map[string]string{"amd64": "amd64", "arm64": "arm64"},
			zsh:        "/usr/share/zsh/vendor-completions/_cniscope",
			preInstall: "deb.preinst", postInstall: "deb.postinst", preRemove: "deb.prerm", postRemove: "deb.postrm",
		},
		{
			name: "rpm", file: "cniscope-%s.%s.rpm", archs: map[string]string{"amd64": "x86_64", "arm64": "aarch64"},
			zsh:         "/usr/share/zsh/site-functions/_cniscope",
			postInstall: "rpm.post", preRemove: "rpm.preun", postRemove: "rpm.postun",
		},
	}
}

func packages(ctx context.Context, r *release) error {
	stage := filepath.Join(r.Work, "packages")
	if err := r.stagePackages(stage); err != nil {
		return err
	}
	for _, f := range formats() {
		for _, arch := range architectures {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := r.pack(f, arch, stage); err != nil {
				return fmt.Errorf("%s for %s: %w", f.name, arch, err)
			}
		}
	}
	return nil
}

func (r *release) pack(f format, arch, stage string) error {
	info := nfpm.WithDefaults(r.describe(f, arch, stage))
	packager, err := nfpm.Get(f.name)
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, f.name); err != nil {
		return err
	}
	return r.create(fmt.Sprintf(f.file, r.Number, f.archs[arch]),
		func(w io.Writer) error { return packager.Package(info, w) })
}

const maintainer = "cniscope maintainers <maintainers@cniscope.dev>"

func (r *release) describe(f format, arch, stage string) *nfpm.Info {
	script := func(name string) string {
		if name == "" {
			return ""
		}
		return filepath.Join(r.Root, "configs/release/nfpm", name)
	}
	return &nfpm.Info{
		Name: "cniscope", Arch: arch, Platform: "linux", Version: r.Version, MTime: r.Time, DisableGlobbing: true,
		Release:    map[string]string{"rpm": "1"}[f.name],
		Maintainer: maintainer, Vendor: "cniscope", Section: "admin", Priority: "optional",
		License:  map[string]string{"rpm": "Apache-2.0"}[f.name], // Debian has a copyright file
		Homepage: "https://github.com/cniscope/cniscope",
		Description: "traces of CNI calls, from the kernel, as OpenTelemetry spans\n" +
			"cniscope observes every CNI call of a Kubernetes node, exports it as a trace\n" +
			"below containerd's own, marks slow and failed calls, and names their cause.\n" +
			"It does not wrap plugins and does not change CNI configuration.",
		Overridables: nfpm.Overridables{
			Depends: []string{"systemd"},
			// Not Recommends: apt would add containerd to a node of k3s or CRI-O.
			Suggests: []string{"containerd"},
			Contents: r.contents(f, arch, stage),
			Scripts: nfpm.Scripts{
				PreInstall: script(f.preInstall), PostInstall: script(f.postInstall),
				PreRemove: script(f.preRemove), PostRemove: script(f.postRemove),
			},
			Deb: nfpm.Deb{Compression: "gzip"}, // xz is a sixth smaller and a hundred times slower
			RPM: nfpm.RPM{
				BuildHost: "cniscope.dev", Group: "System Environment/Daemons", Packager: maintainer, Compression: "gzip:9",
				Summary: "Traces of CNI calls, from the kernel, as OpenTelemetry spans",
			},
		},
	}
}

// contents lists a package's files. Only the options are a configuration file.
func (r *release) contents(f format, arch, stage string) files.Contents {
	var all files.Contents
	add := func(from, to, kind string, mode os.FileMode) {
		info := &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.Time}
		all = append(all, &files.Content{Source: from, Destination: to, Type: kind, FileInfo: info})
	}
	staged := func(name string) string { return filepath.Join(stage, name) }
	add(r.program(arch), "/usr/bin/cniscope", files.TypeFile, 0o755)
	add(staged("cniscope.service"), "/usr/lib/systemd/system/cniscope.service", files.TypeFile, 0o644)
	// The file may hold tokens.
	add(filepath.Join(r.Root, "configs/release/nfpm/cniscope.toml"), "/etc/cniscope/cniscope.toml",
		files.TypeConfigNoReplace, 0o600)
	add(filepath.Join(r.Root, "configs/cniscope.toml"), "/usr/share/cniscope/cniscope.toml", files.TypeFile, 0o644)
	add(staged("package-"+f.name), "/usr/share/cniscope/package", files.TypeFile, 0o644)
	for _, c := range [][2]string{
		{"bash-completion/completions/cniscope", "/usr/share/bash-completion/completions/cniscope"},
		{"zsh/site-functions/_cniscope", f.zsh},
		{"fish/vendor_completions.d/cniscope.fish", "/usr/share/fish/vendor_completions.d/cniscope.fish"},
	} {
		add(filepath.Join(r.shared(), c[0]), c[1], files.TypeFile, 0o644)
	}
	pages, _ := filepath.Glob(staged("man/man*/*.gz"))
	for _, page := range pages {
		kind := files.TypeFile
		if f.name == "rpm" {
			kind = files.TypeRPMDoc
		}
		add(page, filepath.Join("/usr/share/man", strings.TrimPrefix(page, staged("man"))), kind, 0o644)
	}
	if f.name == "deb" {
		add(staged("copyright"), "/usr/share/doc/cniscope/copyright", files.TypeFile, 0o644)
		add(staged("changelog.gz"), "/usr/share/doc/cniscope/changelog.gz", files.TypeFile, 0o644)
		add(r.noticesFile(), "/usr/share/doc/cniscope/THIRD-PARTY-NOTICES.txt", files.TypeFile, 0o644)
		add(filepath.Join(r.Root, "configs/release/nfpm/deb.lintian-overrides"), "/usr/share/lintian/overrides/cniscope",
			files.TypeFile, 0o644)
	} else {
		// dpkg removes empty directories, rpm only a package's.
		for _, dir := range []string{
			"/etc/cniscope", "/usr/share/cniscope", "/usr/share/licenses", "/usr/share/licenses/cniscope",
			"/usr/share/fish", "/usr/share/fish/vendor_completions.d", "/usr/share/zsh", "/usr/share/zsh/site-functions",
		} {
			add("", dir, files.TypeDir, 0o755)
		}
		add(filepath.Join(r.Root, "LICENSE"), "/usr/share/licenses/cniscope/LICENSE", files.TypeRPMLicense, 0o644)
		add(r.noticesFile(), "/usr/share/licenses/cniscope/THIRD-PARTY-NOTICES.txt", files.TypeRPMLicense, 0o644)
	}
	return all
}

func (r *release) stagePackages(stage string) error {
	pages, err := filepath.Glob(filepath.Join(r.shared(), "man/man*/*"))
	if err == nil && len(pages) == 0 {
		err = fmt.Errorf("there are no man pages in %s", r.shared())
	}
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(page, r.shared()) + ".gz"
		if err := stageFile(filepath.Join(stage, name), zipped(text)); err != nil {
			return err
		}
	}
	license, err := os.ReadFile(filepath.Join(r.Root, "LICENSE"))
	return errors.Join(err,
		stageFile(filepath.Join(stage, "cniscope.service"), []byte(packagedUnit())),
		stageFile(filepath.Join(stage, "package-deb"), []byte("deb\n")), // for cniscope status
		stageFile(filepath.Join(stage, "package-rpm"), []byte("rpm\n")),
		stageFile(filepath.Join(stage, "copyright"), []byte(copyright(license))),
		stageFile(filepath.Join(stage, "changelog.gz"), zipped([]byte(r.debianChangelog()))),
	)
}

func stageFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// zipped compresses data as `gzip -9n` does, without name and time.
func zipped(data []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

// packagedUnit has the package's path, without the comment about manual installation.
func packagedUnit() string {
	_, unit, _ := strings.Cut(configs.Unit, "\n[Unit]\n")
	unit = strings.ReplaceAll(unit, "/usr/local/bin/cniscope", "/usr/bin/cniscope")
	return "# cniscope as a service. Changes of yours: systemctl edit cniscope.\n\n[Unit]\n" + unit
}

func copyright(license []byte) string {
	head := "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n" +
		"Upstream-Name: cniscope\nSource: https://github.com/cniscope/cniscope\n\n" +
		"Files: *\nCopyright: 2026 the cniscope authors\nLicense: Apache-2.0\n\nLicense: Apache-2.0\n"
	if strings.Contains(string(license), "Apache License") {
		return head + " On Debian systems, the text of the license is in\n /usr/share/common-licenses/Apache-2.0.\n"
	}
	return head + " See the LICENSE file of the source.\n"
}

// debianChangelog links to the release, because CHANGELOG.md has the changes.
func (r *release) debianChangelog() string {
	number := strings.Replace(r.Number, "-", "~", 1)
	return fmt.Sprintf("cniscope (%s) stable; urgency=medium\n\n  * What has changed: "+
		"https://github.com/cniscope/cniscope/releases/tag/%s\n\n -- %s  %s\n",
		number, r.Version, maintainer, r.Time.Format(time.RFC1123Z))
}
