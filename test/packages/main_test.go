//go:build linux

// Package packages installs, upgrades and removes the deb and rpm packages in a fresh Debian, and checks the files.
// `make test-packages` prepares it.
package packages

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

const cache = "../../.cache/packages"

// release is a directory that `make release` has written, or empty.
var release = os.Getenv("CNISCOPE_RELEASE")

func file(t *testing.T, version, name string) string {
	t.Helper()
	path := harness.Must(filepath.Abs(filepath.Join(cache, "dist", version, name)))(t)
	if _, err := os.Stat(path); err != nil {
		t.Skip("make test-packages builds them: ", err)
	}
	return path
}

// The packages for both architectures hold the same files, with programs for their architecture.
func TestPackagesForBothArchitecturesHoldTheSame(t *testing.T) {
	for _, kind := range [][]string{
		{"cniscope_0.2.0_amd64.deb", "cniscope_0.2.0_arm64.deb", "dpkg-deb", "--fsys-tarfile"},
		{"cniscope-0.2.0.x86_64.rpm", "cniscope-0.2.0.aarch64.rpm", "rpm2archive", "-n"},
	} {
		var lists []string
		for i, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64} {
			pkg := file(t, "v0.2.0", kind[i])
			dir := t.TempDir()
			unpack := kind[2] + " " + kind[3] + " " + pkg
			if kind[2] == "rpm2archive" {
				unpack = "rpm2archive -n - <" + pkg // rpm2archive writes to a pipe if it reads one
			}
			out, err := exec.Command("sh", "-ec", unpack+" | tar -x -C "+dir+" && cd "+dir+" && find . -printf '%P %M %l\\n' | sort").CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", unpack, err, out)
			}
			lists = append(lists, string(out))
			program := harness.Must(elf.Open(filepath.Join(dir, "usr/bin/cniscope")))(t)
			harness.Equal(t, program.Machine, machine, kind[i], "has a program for")
			if program.Section(".interp") != nil {
				t.Errorf("the program of %s is not static", kind[i])
			}
			harness.Check(t, program.Close())
		}
		if lists[0] != lists[1] {
			t.Errorf("%s holds\n%s\nand %s\n%s", kind[0], lists[0], kind[1], lists[1])
		}
	}
}

func TestLintianHasNothingToSay(t *testing.T) {
	out, err := exec.Command("lintian", "--allow-root", "--fail-on", "error,warning", file(t, "v0.2.0", "cniscope_0.2.0_amd64.deb")).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "" {
		t.Errorf("lintian: %v\n%s", err, out)
	}
}

// rpmlint.toml lists the warnings that stay, with reasons.
func TestRpmlintSaysNothingNew(t *testing.T) {
	// rpmlint unpacks nfpm's absolute names with cpio, which would overwrite files of this machine.
	shim := t.TempDir()
	harness.Check(t, os.WriteFile(filepath.Join(shim, "cpio"), []byte("#!/bin/sh\nexec /usr/bin/cpio --no-absolute-filenames \"$@\"\n"), 0o755))
	cmd := exec.Command("rpmlint", "--config", "rpmlint.toml", file(t, "v0.2.0", "cniscope-0.2.0.x86_64.rpm"))
	cmd.Env = append(os.Environ(), "PATH="+shim+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), " 0 errors, 0 warnings") {
		t.Errorf("rpmlint: %v\n%s", err, out)
	}
	if _, err := os.Stat("/usr/share/cniscope/package"); err == nil {
		t.Error("it was unpacked on this machine: /usr/share/cniscope/package")
	}
}
