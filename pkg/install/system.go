package install

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/disk"
)

// programs are where cniscope's own program may go, the first that can be: /opt/bin is in PATH where /usr is
// read-only as a whole (Flatcar).
func programs() []string { return []string{"/usr/local/bin/cniscope", "/opt/bin/cniscope"} }

// program is where cniscope's own program goes.
func (t tree) program() (string, error) {
	all := programs()
	if t.is("flatcar") {
		return all[1], nil
	}
	var why error
	for i, path := range all {
		dir, err := t.file(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		if i > 0 && t.existing(dir) != dir {
			break // where it is not there, nobody looks for programs in it
		}
		err = unfit(t.existing(dir), t.live())
		if err == nil {
			return path, nil
		}
		why = errors.Join(why, fmt.Errorf("%s: %w", dir, err))
	}
	return "", fmt.Errorf("no folder for programs: %w; nothing was changed. Run %s", why, strings.TrimSpace(daemonSet))
}

// existing is dir, or the first folder above it that exists.
func (t tree) existing(dir string) string {
	for ; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if _, err := t.disk.Stat(dir); err == nil {
			break
		}
	}
	return dir
}

// release are the names that a system goes by, its own first: ID and ID_LIKE of os-release(5), of
// the first file that can be read.
func (t tree) release() (names []string) {
	for _, path := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		c, err := t.read(path)
		if err != nil || c == nil || c.to != "" {
			continue
		}
		fields := osRelease(string(c.data))
		return append([]string{fields["ID"]}, strings.Fields(fields["ID_LIKE"])...)
	}
	return nil
}

// is reports whether the system is of that name, or made from one.
func (t tree) is(name string) bool { return slices.Contains(t.release(), name) }

// osRelease reads lines as NAME=value, NAME='value' and NAME="value", in which \ stands before
// what the shell would take for something else.
func osRelease(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		switch quote := value[:min(1, len(value))]; quote {
		case `"`, `'`:
			value, _, _ = strings.Cut(value[1:], quote)
		default:
			value, _, _ = strings.Cut(value, " ")
		}
		fields[name] = strings.ToLower(strings.ReplaceAll(value, `\`, ""))
	}
	return fields
}

const confidentiality = "confidentiality"

// lockdown is what the kernel that runs lets nobody do, root neither (kernel_lockdown(7)): "none",
// "integrity" or "confidentiality"; empty where it does not say.
func (t tree) lockdown() string {
	file, err := t.file("/sys/kernel/security/lockdown")
	if err != nil {
		return ""
	}
	text, err := disk.ReadFile(t.disk, file)
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "[")
	level, _, _ := strings.Cut(rest, "]")
	return level
}

// withoutBPF is why the kernel that runs may refuse the BPF programs of the probe; empty where nothing speaks for that.
// Distributions add to old kernels what newer ones have: RHEL 8 calls its kernel 4.18.
func (t tree) withoutBPF() string {
	var major, minor int
	if file, err := t.file("/proc/sys/kernel/osrelease"); err == nil {
		text, _ := disk.ReadFile(t.disk, file)
		release := strings.TrimSpace(string(text))
		if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n == 2 && (major < 5 || major == 5 && minor < 8) {
			return "Linux " + release + " is older than 5.8, the first with BPF ring buffers"
		}
	}
	if t.exists("/sys/kernel") && !t.exists("/sys/kernel/btf/vmlinux") {
		return "this kernel does not describe itself (there is no /sys/kernel/btf/vmlinux)"
	}
	return ""
}

// onlyCommands is what is seen where nothing looks into processes.
const onlyCommands = "plugins and their commands are seen, and nothing of what these ask of the kernel or wait for"

// lockedDown says what comes of a kernel that keeps its memory from what looks into plugins.
const lockedDown = "this kernel runs with lockdown=confidentiality, which keeps its memory from BPF programs: " +
	onlyCommands + ". To see that too, boot with lockdown=integrity, which is no obstacle"

// talosLockdown is what is to be known of Talos before anything is changed on its account: its kernel command
// line has lockdown=confidentiality with SecureBoot (docs.siderolabs.com, SecureBoot), by default on some
// images without, too.
func talosLockdown(level string) string {
	const change = "boot an image made with the kernel arguments `-lockdown` and `lockdown=integrity` " +
		"(Image Factory: customization.extraKernelArgs; a node that boots by systemd-boot ignores machine.install.extraKernelArgs)"
	const seen = "From a DaemonSet plugins and their commands are seen, and nothing of what these ask of the kernel or wait for. "
	switch level {
	case confidentiality:
		return "This node's kernel runs with lockdown=confidentiality, as Talos boots it unless told otherwise, and keeps its memory from BPF programs. " +
			seen + "To see that too, " + change + ".\n"
	case "":
		return "Look first whether the kernel allows the probe: talosctl -n NODE read /sys/kernel/security/lockdown\n" +
			"With [confidentiality], which Talos sets with SecureBoot and on many images without, the kernel keeps its memory from BPF programs. " +
			seen + "To see that too, " + change + ".\n"
	}
	return fmt.Sprintf("This node's kernel allows the probe (lockdown is %s).\n", level)
}
