package config

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
)

// System is the operating system that options are for: it decides the defaults, and how paths are written.
type System string

// The systems. What has no system is for Linux.
const (
	Linux   System = "linux"
	Windows System = "windows"
)

// Systems are all of them, as people name them.
func Systems() []string { return []string{string(Linux), string(Windows)} }

// Here returns the system that this program runs on. Where nothing is observed, as on macOS, it is Linux.
func Here() System {
	if runtime.GOOS == string(Windows) {
		return Windows
	}
	return Linux
}

// defaultOf returns the default of an option, and wordsOf its words, where the tags name those of Linux. Those of
// Windows are of containerd's documentation and defaults (containerd defaults/defaults_windows.go,
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
		return []string{SourceAuto, SourceETW, SourceSnapshots}
	}
	return strings.Fields(linux)
}

// folder is one of the folders that Windows may have elsewhere, which it says itself.
func (s System) folder(variable, usual string) string {
	if s != Here() {
		return usual
	}
	return cmp.Or(os.Getenv(variable), usual)
}

// File is where the options are read from if nobody names another file.
func (s System) File() string {
	if s == Windows {
		return s.folder("ProgramData", `C:\ProgramData`) + `\cniscope\cniscope.toml`
	}
	return "/etc/cniscope/cniscope.toml"
}

// path finds what is wrong with the absolute path of a file or folder.
func (s System) path(path string) *fault {
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
		return wrong(`write it from the root, as "/run/…"; a file for Windows is checked with --os windows`,
			"%s is a path of Windows", quoted(path))
	}
	return wrong(`write it from the root, as "/run/…"`, "%s is not an absolute path", quoted(path))
}

// drive begins a path of Windows: a relative one if no separator follows.
var drive = regexp.MustCompile(`^[A-Za-z]:`)

// pipePrefix begins the name of a pipe of this machine.
const pipePrefix = `\\.\pipe\`

const windowsRemedy = `write it with its drive and in single quotes, as 'C:\ProgramData\cniscope\…'`

// windowsPath: the rules are those of
// https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file
func windowsPath(path string) *fault {
	slashed := strings.ReplaceAll(path, `\`, "/")
	var rest string
	switch {
	case strings.HasPrefix(slashed, "//./") || strings.HasPrefix(slashed, "//?/"):
		return wrong(windowsRemedy, "%s is the name of a device, not of a file", quoted(path))
	case strings.HasPrefix(slashed, "//"): // \\server\share\…
		rest = slashed[2:]
		if server, share, _ := strings.Cut(rest, "/"); server == "" || share == "" {
			return wrong(windowsRemedy, "%s names no share", quoted(path))
		}
	case drive.MatchString(slashed):
		if rest = slashed[2:]; !strings.HasPrefix(rest, "/") {
			return wrong(windowsRemedy, "%s is relative to the folder that is current on its drive", quoted(path))
		}
	case strings.HasPrefix(path, "/"):
		return wrong(windowsRemedy+"; a file for Linux is checked with --os linux", "%s is a path of Linux", quoted(path))
	default:
		return wrong(windowsRemedy, "%s is not an absolute path", quoted(path))
	}
	for name := range strings.SplitSeq(rest, "/") {
		if what := unfitName(name); what != "" {
			return wrong("choose another name", "%s: %s", quoted(path), what)
		}
	}
	return nil
}

// devices are names that Windows has for itself, in any folder and with any ending.
var devices = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]) *(\..*)?$`)

// unfitName says why no file of Windows can be called so; empty if one can.
func unfitName(name string) string {
	if i := strings.IndexAny(name, `<>:"|?*`); i >= 0 {
		return fmt.Sprintf("no file name of Windows has %q", name[i:i+1])
	}
	if devices.MatchString(name) {
		return fmt.Sprintf("%s is a device of Windows", quoted(name))
	}
	if name != "." && name != ".." && name != strings.TrimRight(name, ". ") {
		return fmt.Sprintf("Windows leaves out the dots and blanks at the end of %s", quoted(name))
	}
	return ""
}

// endpoint finds what is wrong with where the runtime listens: a unix socket, or a pipe of Windows.
func (s System) endpoint(path string) *fault {
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

// program checks a pattern on the path of an executable, which has "/" on every system: "\" is what makes a
// character of a pattern an ordinary one.
func (s System) program(pattern string) *fault {
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
	return wrong(fmt.Sprintf("write it from the root, as %q", example), "%s names no path", quoted(pattern))
}
