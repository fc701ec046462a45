package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
	"github.com/package-url/packageurl-go"
)

func sbom(_ context.Context, r *release) error {
	programs, err := r.programFiles()
	if err != nil {
		return err
	}
	if err := r.writeSBOM("cniscope", r.modules, programs); err != nil {
		return err
	}
	if programs, err = r.pluginFiles(); err != nil {
		return err
	}
	return r.writeSBOM(pluginName, r.pluginModules, programs)
}

func (r *release) writeSBOM(name string, modules map[string]*module, programs []cdx.Component) error {
	return r.create(name+"_"+r.Number+"_sbom.cdx.json", func(w io.Writer) error {
		encoder := cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true)
		return encoder.EncodeVersion(r.bom(name, modules, programs), cdx.SpecVersion1_6)
	})
}

func (r *release) programFiles() ([]cdx.Component, error) {
	var files []cdx.Component
	for _, arch := range architectures {
		file, err := programFile("cniscope_"+r.Number+"_linux_"+arch, r.program(arch))
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func programFile(name, file string) (cdx.Component, error) {
	sum, err := sha256Of(file)
	return cdx.Component{
		BOMRef: name, Type: cdx.ComponentTypeFile, Name: name,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}},
	}, err
}

// bom returns an SBOM. It is reproducible: serial number and time derive from version and commit.
func (r *release) bom(name string, modules map[string]*module, programs []cdx.Component) *cdx.BOM {
	bom, seed := cdx.NewBOM(), ""
	if name != "cniscope" {
		seed = name + "/"
	}
	url := "https://github.com/cniscope/cniscope/" + seed + r.Version + "/" + r.Commit
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(url)).URN()
	std := library("stdlib", strings.TrimPrefix(r.goVersion, "go"), []string{"BSD-3-Clause"})
	components, dependencies := []cdx.Component{std}, []cdx.Dependency{{Ref: std.BOMRef}}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		m := modules[path]
		c := library(m.Path, m.Version, m.Licenses)
		if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
			if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
				c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", raw)}}
			}
		}
		uses := []string{std.BOMRef}
		for _, used := range m.Uses {
			uses = append(uses, purl(used, modules[used].Version))
		}
		dependencies = append(dependencies, cdx.Dependency{Ref: c.BOMRef, Dependencies: &uses})
		if m.Sum != "" {
			components = append(components, c)
			continue
		}
		c.Type, c.Name = cdx.ComponentTypeApplication, name
		c.Components = &programs
		bom.Metadata = &cdx.Metadata{
			Timestamp:  r.Time.Format(time.RFC3339),
			Lifecycles: &[]cdx.Lifecycle{{Phase: cdx.LifecyclePhaseBuild}},
			Component:  &c,
			Properties: &[]cdx.Property{{Name: "cniscope:commit", Value: r.Commit}},
		}
	}
	bom.Components, bom.Dependencies = &components, &dependencies
	return bom
}

func library(path, version string, licenses []string) cdx.Component {
	c := cdx.Component{
		BOMRef: purl(path, version), Type: cdx.ComponentTypeLibrary, Name: path, Version: version,
		PackageURL: purl(path, version),
	}
	if len(licenses) > 0 {
		choices := cdx.Licenses{}
		for _, id := range licenses {
			choices = append(choices, cdx.LicenseChoice{License: &cdx.License{ID: id}})
		}
		c.Licenses = &choices
	}
	return c
}

func purl(path, version string) string {
	namespace, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		namespace, name = path[:i], path[i+1:]
	}
	return packageurl.NewPackageURL(packageurl.TypeGolang, namespace, name, version, nil, "").ToString()
}
