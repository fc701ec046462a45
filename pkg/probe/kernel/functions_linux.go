package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// functionHook stays attached, because detaching is slow (detachWithin).
type functionHook struct {
	functions []string // alternatives, by kernel
	// system calls, named without the architecture's prefix
	systemCall bool
	// programs in order of attachment; may be empty
	end, begin string
}

func (h *functionHook) programs() []string {
	return slices.DeleteFunc([]string{h.end, h.begin}, func(name string) bool { return name == "" })
}

var functionHooks = []functionHook{
	{[]string{"netlink_sendmsg"}, false, "on_request_end", "on_request"},
	{[]string{"get_net_ns_by_fd"}, false, "on_namespace", ""},
	{[]string{"unix_stream_connect"}, false, "on_unix_connect_end", "on_unix_connect"},
	{[]string{"inet_stream_connect"}, false, "on_inet_connect_end", "on_inet_connect"},
	{[]string{"inet_dgram_connect"}, false, "on_dgram_connect_end", "on_dgram_connect"},
	{[]string{"do_accept"}, false, "on_accept", ""},
	{[]string{"unix_release"}, false, "", "on_unix_close"},
	{[]string{"inet_release"}, false, "", "on_inet_close"},
	{[]string{"anon_pipe_read", "pipe_read"}, false, "on_read", ""}, // the former since Linux 6.16
	{[]string{"anon_pipe_write", "pipe_write"}, false, "", "on_write"},
	{[]string{"proc_sys_write"}, false, "on_setting_end", "on_setting"},
	{[]string{"nf_setsockopt"}, false, "on_sockopt_end", "on_sockopt"},
	{[]string{"sock_ioctl"}, false, "on_ioctl_end", "on_ioctl"},
	{[]string{"setns"}, true, "on_setns_end", "on_setns"},
	{[]string{"unshare"}, true, "on_unshare_end", "on_unshare"},
	{[]string{"bpf"}, true, "on_bpf_end", "on_bpf"},
	{[]string{"mount"}, true, "on_mount_end", "on_mount"},
	{[]string{"umount"}, true, "on_umount_end", "on_umount"},
	{[]string{"move_mount"}, true, "on_move_mount_end", "on_move_mount"},
}

// functionTracepoints stay attached.
var (
	functionTracepoints = []string{"on_flock", "on_fcntl", "on_tcp_state"}
	waitHooks           = []string{"on_switch"}
	lockHooks           = []string{"on_contention_end", "on_contention"}
	talkHooks           = []string{"on_return", "on_enter"}
)

// openFunctions attaches all programs to functions, or none.
func (s *Side) openFunctions(o Options, types *btf.Spec) (err error) {
	if err := tryFunction(); err != nil {
		return err
	}
	spec, err := LoadFunctions()
	if err != nil {
		return fmt.Errorf("reading the embedded programs: %w", err)
	}
	aim(spec, types)
	if err := o.shapeInside(spec); err != nil {
		return fmt.Errorf("setting options: %w", err)
	}
	before, missing := len(s.loaded), len(s.Missing)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Gate.put(), s.functions.closeWithin(detachWithin), s.Inside.close())
			s.unload(before)
			s.Missing = s.Missing[:missing]
			s.Inside = InsideTables{}
		}
	}()
	shared := s.shared()
	shared[pipeMarks] = s.loaded[0].Maps[pipeMarks]
	if err := s.load(spec, shared, &s.Inside); err != nil {
		return fmt.Errorf("loading: %w", err)
	}
	return s.attachFunctions()
}

const pipeMarks = ".data.pipes"

func aim(spec *ebpf.CollectionSpec, kernel *btf.Spec) {
	for _, h := range functionHooks {
		for _, program := range h.programs() {
			spec.Programs[program].AttachTo = h.in(kernel)
		}
	}
}

// tryFunction attaches nothing, but finds kernels that refuse even an empty program.
func tryFunction() error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFEntry, AttachTo: functionHooks[0].functions[0], License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	return p.Close()
}

func (s *Side) attachFunctions() error {
	programs := slices.Clone(functionTracepoints)
	for _, h := range functionHooks {
		programs = append(programs, h.programs()...)
	}
	if err := s.functions.attach(s.named(programs)...); err != nil {
		return err
	}
	s.Gate.Calls.programs, s.Gate.rest = s.named(waitHooks), s.named(lockHooks)
	s.Gate.Talk.programs, s.Gate.misses.programs = s.named(talkHooks), s.named([]string{missHook})
	return s.tryGate()
}

// forgetPipes clears the marks of pipes. A process added concurrently sets all marks, which only costs time.
func (s *Side) forgetPipes() {
	if s.Way != WayFunctions || s.follows() {
		return
	}
	// A missed end would leave every process's requests examined.
	_ = s.loaded[len(s.loaded)-1].Maps[".data.underway"].Put(uint32(0), uint64(0))
	marks := s.loaded[0].Maps[pipeMarks]
	value := make([]byte, marks.ValueSize())
	_ = marks.Put(uint32(0), value)
	if s.follows() {
		_ = marks.Put(uint32(0), bytes.Repeat([]byte{1}, len(value)))
	}
}

func (s *Side) follows() (any bool) {
	Each(s.Life.Processes, func(*uint32, *LifeProcess) { any = true })
	return any
}

func (s *Side) named(programs []string) (found []*ebpf.Program) {
	for _, name := range programs {
		found = append(found, s.Programs[name])
	}
	return found
}

func (s *Side) unload(first int) {
	for _, c := range s.loaded[first:] {
		for name := range c.Programs {
			delete(s.Programs, name)
		}
		c.Close()
	}
	s.loaded = s.loaded[:first]
}

// How a timeout is passed (bpf/waits.h), plus the argument's index.
const (
	inMilliseconds    = 0x10
	asTimespec        = 0x20
	asTimespecOfFutex = 0x30
	asTimeval         = 0x40
	asTimespecOfClock = 0x50
	asBefore          = 0x60
)

func timeouts() [512]uint8 {
	return byNumber(legacyTimeouts(), map[int]uint8{
		unix.SYS_EPOLL_PWAIT: inMilliseconds + 3, unix.SYS_EPOLL_PWAIT2: asTimespec + 3,
		unix.SYS_PPOLL: asTimespec + 2, unix.SYS_PSELECT6: asTimespec + 4,
		unix.SYS_RT_SIGTIMEDWAIT: asTimespec + 2, unix.SYS_FUTEX: asTimespecOfFutex + 3,
		unix.SYS_NANOSLEEP: asTimespec, unix.SYS_CLOCK_NANOSLEEP: asTimespecOfClock + 2, unix.SYS_RESTART_SYSCALL: asBefore,
	})
}
