package gather

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/builds"
	"github.com/cniscope/cniscope/pkg/procfs"
)

const (
	// Bytes by which the kernel recognizes a program (BINPRM_BUF_SIZE).
	headSize = 256
	// Most scripts that interpret each other (fs/exec.c, exec_binprm).
	nested = 5
	// Libraries of a program, and directories of each.
	librariesMax, dirsMax = 64, 64
)

func machines() []elf.Machine {
	switch runtime.GOARCH {
	case "amd64":
		return []elf.Machine{elf.EM_X86_64, elf.EM_386}
	case "arm64":
		return []elf.Machine{elf.EM_AARCH64, elf.EM_ARM}
	}
	return nil
}

func machineName(m elf.Machine) string {
	switch m {
	case elf.EM_X86_64:
		return "x86-64"
	case elf.EM_386:
		return "i386"
	}
	return strings.ToLower(strings.TrimPrefix(m.String(), "EM_"))
}

func faultOf(sees view, file string) *event.Program {
	if mount, is := noexec(sees, file); is {
		return &event.Program{File: file, Fault: event.FaultMount, Has: mount}
	}
	return unstartable(sees, file, nested)
}

func noexec(sees view, file string) (mount string, is bool) {
	var s unix.Statfs_t
	if unix.Statfs(sees.path(file), &s) != nil || s.Flags&unix.ST_NOEXEC == 0 {
		return "", false
	}
	var own, above unix.Stat_t
	for mount = file; mount != "/"; mount = filepath.Dir(mount) {
		if unix.Stat(sees.path(mount), &own) != nil || unix.Stat(sees.path(filepath.Dir(mount)), &above) != nil ||
			own.Dev != above.Dev {
			break
		}
	}
	return mount, true
}

func unstartable(sees view, file string, depth int) *event.Program {
	f, err := procfs.OpenRegular(sees.path(file), 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, headSize)
	n, _ := io.ReadFull(f, head)
	head = head[:n]
	switch {
	case handled(sees, file, head):
		return nil
	case bytes.HasPrefix(head, []byte("#!")):
		return script(sees, file, head, depth)
	case !bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		return &event.Program{File: file, Fault: event.FaultFormat}
	}
	return ofELF(sees, file, f)
}

func script(sees view, file string, head []byte, depth int) *event.Program {
	line, _, _ := bytes.Cut(head[2:], []byte("\n"))
	fields := strings.FieldsFunc(string(line), func(r rune) bool { return r == ' ' || r == '\t' || r == 0 })
	if len(fields) == 0 || depth == 0 {
		return &event.Program{File: file, Fault: event.FaultFormat}
	}
	interpreter := fields[0]
	if !filepath.IsAbs(interpreter) {
		return nil // to the caller's directory
	}
	if info, err := os.Stat(sees.path(interpreter)); errors.Is(err, fs.ErrNotExist) {
		return &event.Program{File: file, Fault: event.FaultInterpreter, Needs: visible(interpreter)}
	} else if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return unstartable(sees, interpreter, depth-1)
}

func visible(s string) string {
	if quoted := strconv.Quote(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}

func ofELF(sees view, file string, f *os.File) *event.Program {
	e, err := builds.ELF(f)
	if err != nil {
		return nil
	}
	if known := machines(); len(known) > 0 && !slices.Contains(known, e.Machine) {
		return &event.Program{
			File: file, Fault: event.FaultArchitecture, Needs: machineName(e.Machine),
			Has: machineName(known[0]),
		}
	}
	for _, p := range e.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		name, err := io.ReadAll(io.LimitReader(p.Open(), unix.PathMax))
		interpreter := string(bytes.TrimRight(name, "\x00"))
		if err != nil || !filepath.IsAbs(interpreter) {
			return nil
		}
		if _, err := os.Stat(sees.path(interpreter)); errors.Is(err, fs.ErrNotExist) {
			return &event.Program{File: file, Fault: event.FaultInterpreter, Needs: visible(interpreter)}
		}
		return unlinked(sees, file, e, interpreter)
	}
	return nil
}

// object may be no ELF file.
type object struct {
	file   string
	elf    *elf.File
	opened *os.File
}

// unlinked follows libraries like ld.so(8), without LD_LIBRARY_PATH, which runtimes do not set.
func unlinked(sees view, file string, e *elf.File, interpreter string) *event.Program {
	dirs, cached := libraryDirs(sees, interpreter)
	loaded := map[string]object{}
	defer func() {
		for _, o := range loaded {
			_ = o.opened.Close()
		}
	}()
	for next := []object{{file, e, nil}}; len(next) > 0; next = next[1:] {
		by := next[0]
		d := builds.DynamicOf(by.elf)
		own, inherited := searched(sees.real(by.file), d)
		dirs = append(slices.Clip(dirs), inherited...)
		for _, name := range d.Needed {
			of, is := loaded[name]
			if !is {
				if name == "" || len(loaded) >= librariesMax || builtIn(interpreter, name) {
					continue
				}
				of = libraryOf(sees, name, slices.Concat(own, dirs, cached[name]), by.elf)
				if of.file == "" {
					return &event.Program{File: file, Fault: event.FaultLibrary, Needs: visible(name)}
				}
				if of.elf == nil {
					continue
				}
				loaded[name] = of
				next = append(next, of)
			}
			if version := lackingVersion(d.Wants[name], of.elf); version != "" {
				return &event.Program{File: file, Fault: event.FaultVersion, Needs: visible(version), Has: of.file}
			}
		}
	}
	return nil
}

// builtIn detects libraries within musl's loader, which is libc itself (ldso/dynlink.c, load_library).
func builtIn(interpreter, name string) bool {
	own := []string{"libc.", "libpthread.", "librt.", "libm.", "libdl.", "libutil.", "libxnet."}
	return strings.HasPrefix(filepath.Base(interpreter), "ld-musl-") &&
		slices.ContainsFunc(own, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func searched(file string, d builds.Dynamic) (own, inherited []string) {
	origin := strings.NewReplacer("${ORIGIN}", filepath.Dir(file), "$ORIGIN", filepath.Dir(file))
	of := func(all []string) (dirs []string) {
		for dir := range strings.SplitSeq(strings.Join(all, ":"), ":") {
			if dir != "" && len(dirs) < dirsMax {
				dirs = append(dirs, origin.Replace(dir))
			}
		}
		return dirs
	}
	if own = of(d.RunPath); len(own) > 0 {
		return own, nil
	}
	return nil, of(d.RPath)
}

func libraryOf(sees view, name string, dirs []string, by *elf.File) (o object) {
	if strings.Contains(name, "/") {
		dirs, name = []string{filepath.Dir(name)}, filepath.Base(name)
	}
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		opened, err := procfs.OpenRegular(sees.path(file), 0)
		if errors.Is(err, fs.ErrPermission) {
			o.file = file
		}
		if err != nil {
			continue
		}
		found, err := builds.ELF(opened)
		if err == nil && found.Class == by.Class && found.Machine == by.Machine {
			return object{file, found, opened}
		}
		if _ = opened.Close(); err != nil && !errors.Is(err, io.EOF) {
			o.file = file
		}
	}
	return o
}

func lackingVersion(wants []string, library *elf.File) string {
	has := builds.DynamicOf(library).Has
	for _, version := range wants {
		if len(has) > 0 && !slices.Contains(has, version) { // without versions the loader only warns
			return version
		}
	}
	return ""
}

func libraryDirs(sees view, interpreter string) (dirs []string, cached map[string][]string) {
	if base := filepath.Base(interpreter); strings.HasPrefix(base, "ld-musl-") {
		own := filepath.Join(filepath.Dir(filepath.Dir(interpreter)), "etc", strings.TrimSuffix(base, ".so.1")+".path")
		if text, err := read(sees.path(own)); err == nil {
			return strings.FieldsFunc(string(text), func(r rune) bool { return r == ':' || r == '\n' }), nil
		}
		return []string{"/lib", "/usr/local/lib", "/usr/lib"}, nil
	}
	for _, root := range []string{"/lib", "/usr/lib", "/lib64", "/usr/lib64"} {
		below, _ := filepath.Glob(filepath.Join(sees.path(root), "*-linux-*")) // Debian's multiarch
		dirs = append(dirs, root)
		for _, dir := range below {
			dirs = append(dirs, filepath.Join(root, filepath.Base(dir)))
		}
	}
	dirs = append(dirs, filepath.Dir(interpreter))
	cache, err := read(sees.path("/etc/ld.so.cache"))
	if err != nil {
		return dirs, nil
	}
	cached = map[string][]string{}
	for text := range bytes.SplitSeq(cache, []byte{0}) {
		if dir, name := filepath.Split(string(text)); filepath.IsAbs(dir) {
			cached[name] = append(cached[name], dir)
		}
	}
	return dirs, cached
}

func handled(sees view, file string, head []byte) bool {
	dir := sees.path("/proc/sys/fs/binfmt_misc")
	if status, err := read(dir + "/status"); err != nil || !bytes.HasPrefix(status, []byte("enabled")) {
		return false
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() == "status" || e.Name() == "register" {
			continue
		}
		if text, err := read(dir + "/" + e.Name()); err == nil && takes(text, file, head) {
			return true
		}
	}
	return false
}

func takes(entry []byte, file string, head []byte) bool {
	lines := bufio.NewScanner(bytes.NewReader(entry))
	var magic, mask []byte
	offset, enabled := 0, false
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), " ")
		switch key {
		case "enabled":
			enabled = true
		case "extension":
			return enabled && strings.HasSuffix(file, value)
		case "offset":
			_, _ = fmt.Sscan(value, &offset)
		case "magic":
			magic, _ = hex.DecodeString(value)
		case "mask":
			mask, _ = hex.DecodeString(value)
		}
	}
	if !enabled || len(magic) == 0 || offset < 0 || offset+len(magic) > len(head) {
		return false
	}
	for i, want := range magic {
		m := byte(0xff)
		if i < len(mask) {
			m = mask[i]
		}
		if head[offset+i]&m != want&m {
			return false
		}
	}
	return true
}
