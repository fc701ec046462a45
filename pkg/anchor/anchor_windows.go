package anchor

import (
	"context"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"

	winio "github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"github.com/cniscope/cniscope/pkg/private"
	"github.com/cniscope/cniscope/pkg/text"
)

// lookUp returns a Start in ns since 1970.
func lookUp(pid int) (a Anchor, ok bool) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return a, false
	}
	defer func() { _ = windows.CloseHandle(h) }()
	if r, err := windows.WaitForSingleObject(h, 0); err != nil || r == windows.WAIT_OBJECT_0 {
		return a, false
	}
	var created, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &created, &ended, &kernel, &user) != nil {
		return a, false
	}
	file := fileOf(h)
	return Anchor{PID: pid, Start: created.Nanoseconds(), Name: text.Clean(path.Base(file), 64)}, true
}

func fileOf(h windows.Handle) string {
	var name [windows.MAX_LONG_PATH]uint16
	n := uint32(len(name))
	if windows.QueryFullProcessImageName(h, 0, &name[0], &n) != nil {
		return ""
	}
	return strings.ReplaceAll(windows.UTF16ToString(name[:n]), `\`, "/")
}

// Peer returns the PID of the pipe's server; 0 if unknown.
func Peer(c net.Conn) int {
	pipe, ok := c.(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	var pid uint32
	if windows.GetNamedPipeServerProcessId(windows.Handle(pipe.Fd()), &pid) != nil {
		return 0
	}
	return int(pid)
}

// Ask adds a pipe's server. Administrators or the system must own the pipe, since any user can create a free name.
func (s *Set) Ask(ctx context.Context, pipe string) error {
	pipe = strings.ReplaceAll(strings.TrimPrefix(pipe, "npipe://"), "/", `\`)
	c, err := winio.DialPipeContext(ctx, pipe)
	if err != nil {
		return err
	}
	defer c.Close()
	h, ok := c.(interface{ Fd() uintptr })
	if !ok {
		return fmt.Errorf("%s: whose it is cannot be asked of a %T", pipe, c)
	}
	if err := private.Owned(windows.Handle(h.Fd())); err != nil {
		return fmt.Errorf("%s: %w: %w", pipe, err, ErrStranger)
	}
	s.Serves(pipe, Peer(c))
	return nil
}

// Name scans once. If it finds no process, the previous ones stay. Containers' executables have other paths
// ("/Device/…" or another drive).
func (s *Set) Name(patterns []string, _ bool) {
	var found []Anchor
	for _, pid := range processes() {
		h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
		if err != nil {
			continue
		}
		file := strings.ToLower(fileOf(h))
		_ = windows.CloseHandle(h)
		if !slices.ContainsFunc(patterns, func(p string) bool {
			ok, _ := path.Match(strings.ToLower(strings.ReplaceAll(p, `\`, "/")), file)
			return ok
		}) {
			continue
		}
		if a, ok := lookUp(int(pid)); ok {
			a.How = byOption
			found = append(found, a)
		}
	}
	if len(found) > 0 {
		slices.SortFunc(found, func(a, b Anchor) int { return int(min(1, max(-1, a.Start-b.Start))) })
		s.put(byOption, found[:min(len(found), maxNamed)])
	}
}

func processes() []uint32 {
	pids, bytes := make([]uint32, 1<<15), uint32(0)
	if windows.EnumProcesses(pids, &bytes) != nil {
		return nil
	}
	return pids[:bytes/4]
}
