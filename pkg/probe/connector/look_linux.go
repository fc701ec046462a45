package connector

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/probe/trust"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// textMax bounds what is read: a pod's environment may name thousands of services.
const textMax = 256 << 10

// looker is a proctracker.Looker; plain system calls cost a fifth of os.ReadFile.
type looker struct {
	node     trust.Node
	rootless bool
	memory   *procfs.Memory
	anchored atomic.Pointer[[]uint32]
	buffer   [textMax]byte
	// number of strangers that may be read until the next refill
	budget int
	// the last PID asked for, and its caller
	asked    uint32
	caller   event.Caller
	suspends *clock.Suspends
}

func newLooker(o Options) *looker {
	l := &looker{
		node: trust.NewNode(o.Anchors, o.Rootless), rootless: o.Rootless, memory: procfs.NewMemory(), suspends: clock.NewSuspends(), budget: 1 << 20,
	}
	l.setAnchors(nil)
	return l
}

func (l *looker) setAnchors(anchors []anchor.Anchor) {
	pids := make([]uint32, len(anchors))
	for i, a := range anchors {
		pids[i] = uint32(a.PID)
	}
	l.anchored.Store(&pids)
}

// strangersMax bounds reads of 60 µs per 200 ms.
const strangersMax = 8

func (l *looker) refill() { l.budget = strangersMax }

func (l *looker) anchor(pid uint32) bool { return slices.Contains(*l.anchored.Load(), pid) }

func (l *looker) Runtime(pid uint32) bool {
	return slices.Contains(*l.anchored.Load(), pid) && l.node.Runtime(pid)
}

func (l *looker) Caller(pid uint32) event.Caller {
	if l.asked == pid {
		return l.caller
	}
	return l.node.Caller(pid)
}

// aliveWithin bounds the difference of a start in /proc and in a message; no PID is reused so soon.
const aliveWithin = int64(1e9)

func (l *looker) Alive(pid uint32, began int64) bool {
	s, err := procfs.StatOf(int(pid))
	if err != nil {
		return !procfs.Gone(err)
	}
	if d := l.suspends.Monotonic(s.Start) - began; d > aliveWithin || d < -aliveWithin {
		return false
	}
	return !procfs.Ended(int(pid))
}

func (l *looker) Look(pid, up uint32, stranger bool) (s proctracker.Sight, ok bool) {
	defer func() {
		if !ok && (!stranger || up == 0) {
			l.remains(pid, &s)
		}
	}()
	s.Parent, s.At = up, clock.Monotonic()
	if up == 0 {
		l.remains(pid, &s)
	}
	l.asked = 0
	if stranger {
		return s, l.stranger(pid, &s)
	}
	given, err := l.startOf(pid)
	return s, err == nil && l.program(pid, &s, given) && l.still(pid, &s, given)
}

// still reports whether one program was read. After the exit that is assumed.
func (l *looker) still(pid uint32, s *proctracker.Sight, was start) bool {
	stat, at, err := procfs.ExtentOf(int(pid))
	if err != nil || stat.Zombie() {
		s.At = clock.Monotonic()
		return true
	}
	if at == (procfs.Extent{}) {
		args, err := l.read(file(pid, "cmdline"))
		return err == nil && slices.Equal(procfs.Split(args), s.Args)
	}
	return at == was.at
}

func (l *looker) remains(pid uint32, s *proctracker.Sight) {
	if stat, err := procfs.StatOf(int(pid)); err == nil {
		s.Parent, s.Began, s.Name = uint32(stat.Parent), l.suspends.Monotonic(stat.Start), stat.Name
	}
}

// stranger reads only possible plugins: the runtime's children, and processes in the host's mount namespace.
func (l *looker) stranger(pid uint32, s *proctracker.Sight) bool {
	if l.anchor(s.Parent) {
		given, err := l.startOf(pid)
		return err == nil && (!calls(given.env) || l.perhaps(pid, s, given))
	}
	known := len(*l.anchored.Load()) > 0
	if known && l.budget <= 0 {
		return true
	}
	if known {
		l.budget--
	}
	host, err := l.onHost(pid)
	switch {
	case err != nil:
		return false
	case !host && known:
		return true
	}
	env, err := l.environment(pid, host)
	if err != nil || !calls(env) {
		return err == nil
	}
	given, err := l.startOf(pid)
	return err == nil && l.perhaps(pid, s, given)
}

func calls(env []byte) bool {
	return bytes.HasPrefix(env, []byte("CNI_COMMAND=")) || bytes.Contains(env, []byte("\x00CNI_COMMAND="))
}

func (l *looker) perhaps(pid uint32, s *proctracker.Sight, given start) bool {
	given.args, given.env = bytes.Clone(given.args), bytes.Clone(given.env) // overwritten by the next read
	// Trust comes first, while the process still runs.
	if l.asked, l.caller = pid, l.node.Caller(pid); l.caller == "" {
		_, err := l.onHost(pid)
		return err == nil
	}
	return l.program(pid, s, given) && l.still(pid, s, given)
}

func (l *looker) onHost(pid uint32) (bool, error) {
	inode, err := procfs.Namespace(int(pid), "mnt")
	mnt, _ := l.node.Namespaces()
	return err == nil && inode == mnt, err
}

// environment is nil for a kernel thread. A container's memory may hang.
func (l *looker) environment(pid uint32, host bool) ([]byte, error) {
	if host {
		return l.read(file(pid, "environ"))
	}
	env, err := l.memory.Environment(int(pid))
	return []byte(strings.Join(env, "\x00")), err
}

func (l *looker) program(pid uint32, s *proctracker.Sight, given start) bool {
	if len(given.args) == 0 { // exited
		return false
	}
	s.Args, s.Env = procfs.Split(given.args), procfs.Split(given.env)
	var link [unix.PathMax]byte
	n, err := unix.Readlink(file(pid, "exe"), link[:])
	if err != nil {
		return false
	}
	s.File = strings.TrimSuffix(string(link[:n]), " (deleted)")
	if given.file != s.File && strings.HasPrefix(given.file, "/") { // no link or script's interpreter
		if script := slices.Index(s.Args, given.file) > 0; script || sameFile(pid, given.file) {
			s.File, s.Script = given.file, script
		}
	}
	s.Stdin, s.NetNS = l.stdin(pid), namespace(pid)
	if !s.InPath() {
		s.Locate()
	}
	if s.InPath() && l.asked != pid && trust.Rights(pid) == 0 && !l.rootless {
		s.Env = nil // unprivileged: may be fake
	}
	return true
}

// sameFile reports whether the process runs the file at path, which it may have overwritten in memory.
func sameFile(pid uint32, path string) bool {
	var named, runs unix.Stat_t
	return unix.Stat(file(pid, "root")+path, &named) == nil && unix.Stat(file(pid, "exe"), &runs) == nil &&
		named.Dev == runs.Dev && named.Ino == runs.Ino
}

func (l *looker) stdin(pid uint32) string {
	var st unix.Stat_t
	switch err := unix.Stat(file(pid, "fd/0"), &st); {
	case errors.Is(err, unix.ENOENT):
		return event.NoStdin
	case err != nil:
		return ""
	case st.Mode&unix.S_IFMT == unix.S_IFCHR:
		return event.NoStdin
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

func namespace(pid uint32) event.Namespace {
	inode := trust.Namespace(pid, "net")
	if inode == 0 {
		return event.Namespace{}
	}
	label := strconv.FormatUint(uint64(inode), 10)
	return event.Namespace{Key: label, Label: label}
}

// read returns a file of /proc, up to textMax bytes, valid until the next call.
func (l *looker) read(name string) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for n := 0; ; {
		got, err := unix.Read(fd, l.buffer[n:])
		if err != nil || got == 0 || n+got == len(l.buffer) {
			return l.buffer[:n+max(0, got)], err
		}
		n += got
	}
}

func file(pid uint32, name string) string {
	return "/proc/" + strconv.FormatUint(uint64(pid), 10) + "/" + name
}

var _ proctracker.Looker = (*looker)(nil)

// start is valid until the next look.
type start struct {
	args, env []byte
	// execve(2)'s path; may be empty
	file string
	at   procfs.Extent
}

// errNoMemory means an exited process, or a kernel thread.
var errNoMemory = errors.New("it has no memory of its own")

// startOf reads memory once: each file of /proc would wait while the process maps memory.
func (l *looker) startOf(pid uint32) (start, error) {
	stat, at, err := procfs.ExtentOf(int(pid))
	if err != nil {
		return start{}, err
	}
	if at.Args == 0 || at.ArgsEnd < at.Args || at.Env < at.ArgsEnd || at.EnvEnd < at.Env {
		if stat.Zombie() {
			return start{}, errNoMemory
		}
		return l.startByFiles(pid, at)
	}
	fd, err := unix.Open(file(pid, "mem"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		if procfs.Gone(err) {
			return start{}, err
		}
		return l.startByFiles(pid, at)
	}
	defer unix.Close(fd)
	most := uint64(len(l.buffer))
	text := l.buffer[:min(most, at.EnvEnd-at.Args+unix.PathMax)]
	n := 0
	for n < len(text) {
		got, err := unix.Pread(fd, text[n:], int64(at.Args)+int64(n))
		if err != nil || got == 0 {
			break
		}
		n += got
	}
	if n == 0 {
		return start{}, errNoMemory
	}
	text = text[:n]
	part := func(from, to uint64) []byte {
		return text[min(from-at.Args, uint64(n)):min(to-at.Args, uint64(n))]
	}
	s := start{at: at, args: part(at.Args, at.ArgsEnd), env: part(at.Env, at.EnvEnd)}
	if rest := part(at.EnvEnd, at.EnvEnd+unix.PathMax); bytes.IndexByte(rest, 0) > 0 {
		s.file = string(rest[:bytes.IndexByte(rest, 0)])
	}
	return s, nil
}

// startByFiles is for processes whose memory may not be read by address.
func (l *looker) startByFiles(pid uint32, at procfs.Extent) (s start, err error) {
	s.at = at
	args, err := l.read(file(pid, "cmdline"))
	if err != nil {
		return s, err
	}
	s.args = bytes.Clone(args)
	env, err := l.read(file(pid, "environ"))
	s.env = env
	return s, err
}
