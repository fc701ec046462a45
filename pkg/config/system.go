package config

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
)

// System is an operating system, which decides defaults and path syntax.
type System string

// Supported systems.
const (
	Linux   System = "linux"
	Windows System = "windows"
)

// Systems returns the names of all systems.
func Systems() []string { return []string{string(Linux), string(Windows)} }

// Here returns the current system; Linux on platforms without observation, such as macOS.
func Here() System {
	if runtime.GOOS == string(Windows) {
		return Windows
	}
	return Linux
}

// defaultOf returns a default. Those of Windows are containerd's (defaults/defaults_windows.go,
// scripts/setup/install-cni-windows).
func (s System) defaultOf(key, linux string) string {
	if s != Windows {
		return linux
	}
	switch key {
	case "nri.enabled", "nri.socket":
		return ""
	case "runtime.socket":
		return `\\.\pipe\containerd-containerd`
	case "cni.conf_dir":
		return s.folder("ProgramFiles", `C:\Program Files`) + `\containerd\cni\conf`
	case "state.dir":
		return s.folder("ProgramData", `C:\ProgramData`) + `\cniscope\run`
	}
	return linux
}

func (s System) wordsOf(key, linux string) []string {
	if s == Windows && key == "probe.source" {
		return []string{"auto", "etw", "snapshots"}
	}
	return strings.Fields(linux)
}

func (s System) folder(variable, usual string) string {
	if s != Here() {
		return usual
	}
	return cmp.Or(os.Getenv(variable), usual)
}

// File returns the default configuration file.
func (s System) File() string {
	if s == Windows {
		return s.folder("ProgramData", `C:\ProgramData`) + `\cniscope\cniscope.toml`
	}
	return "/etc/cniscope/cniscope.toml"
}

func (s System) path(path string) *Problem {
	if s == Windows {
		return windowsPath(path)
	}
	if strings.HasPrefix(path, "/") {
		return nil
	}
	if path, ok := strings.CutPrefix(path, "unix://"); ok && strings.HasPrefix(path, "/") {
		return wrong("write "+quote(path), "%s is an address, not a path", quoted(path))
	}
	if drive.MatchString(path) || strings.HasPrefix(path, `\\`) {
		return wrong(`write it from the root, such as "/run/…"; a file for Windows is checked with --os windows`,
			"%s is a path of Windows", quoted(path))
	}
	return wrong(`write it from the root, such as "/run/…"`, "%s is not an absolute path", quoted(path))
}

var drive = regexp.MustCompile(`^[A-Za-z]:`)

const pipePrefix = `\\.\pipe\`

const windowsRemedy = `write it with its drive and in single quotes, as 'C:\ProgramData\cniscope\…'`

// windowsPath follows https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file
func windowsPath(path string) *Problem {
	slashed := strings.ReplaceAll(path, `\`, "/")
	switch {
	case strings.HasPrefix(slashed, "//./") || strings.HasPrefix(slashed, "//?/"):
		return wrong(windowsRemedy, "%s is the name of a device, not of a file", quoted(path))
	case strings.HasPrefix(path, "/"):
		return wrong(windowsRemedy+"; a file for Linux is checked with --os linux", "%s is a path of Linux", quoted(path))
	case !strings.HasPrefix(slashed, "//") && !strings.HasPrefix(drive.ReplaceAllString(slashed, "//"), "///"):
		return wrong(windowsRemedy, "%s is not an absolute path", quoted(path))
	case strings.ContainsAny(drive.ReplaceAllString(path, ""), `<>:"|?*`):
		return wrong("choose another name", `%s has one of <>:"|?*, which no file name of Windows has`, quoted(path))
	}
	return nil
}

func (s System) endpoint(path string) *Problem {
	if s != Windows {
		return s.path(path)
	}
	const remedy = `write the name of a pipe in single quotes, as '\\.\pipe\containerd-containerd'`
	slashed := strings.ReplaceAll(path, `\`, "/")
	if name, ok := strings.CutPrefix(slashed, "npipe:"); ok && strings.HasPrefix(strings.TrimLeft(name, "/"), "./pipe/") {
		pipe := pipePrefix + strings.TrimPrefix(strings.TrimLeft(name, "/"), "./pipe/")
		return wrong("write '"+pipe+"'", "%s is an address, not the name of a pipe", quoted(path))
	}
	if name := strings.TrimPrefix(slashed, "//./pipe/"); name == slashed || name == "" {
		return wrong(remedy, "%s is not the name of a pipe", quoted(path))
	}
	return nil
}

// program checks a pattern for a path, with "/" also on Windows, because "\" escapes in patterns.
func (s System) program(pattern string) *Problem {
	if f := checkPattern(pattern); f != nil {
		return f
	}
	example, rest := "/usr/bin/cri-dockerd", pattern
	if s == Windows {
		example, rest = "C:/k/bin/containerd.exe", drive.ReplaceAllString(pattern, "")
	}
	if strings.HasPrefix(rest, "/") && (s != Windows || rest != pattern) {
		return nil
	}
	return wrong(fmt.Sprintf("write it from the root, such as %q", example), "%s names no path", quoted(pattern))
}
