package probe

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/probe/symbols"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// initialPIDNamespace is PROC_PID_INIT_INO (include/linux/proc_ns.h).
const initialPIDNamespace = 0xEFFFFFFC

// Probe is the kernel side, loaded and attached, and its reader.
type Probe struct {
	options Options
	objects bpfObjects
	links   []link.Link
	inside  insides
	reader  *ringbuf.Reader
	pidNS   uint32
	opened  int64 // monotonic ns
	symbols *symbols.Table
	lacking []missing
	host    hostNamespaces
	unwatch func() // the anchors
	left    int32  // see giveShareBack

	undecodable atomic.Uint64
}

// Open loads the kernel side and attaches it: from then on events collect in the
// ring buffer. It returns an UnsupportedError where the kernel or the permissions
// do not allow it. Needs CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN before 5.8), Linux
// 5.8 or later with BTF.
func Open(o Options) (_ *Probe, err error) {
	p := &Probe{options: o, opened: clock.Monotonic()}
	defer func() {
		if err != nil {
			_ = p.Close()
		}
	}()
	// Only kernels before 5.11 need it, and only there its failure matters: loading
	// then says so.
	_ = rlimit.RemoveMemlock()

	spec, err := loadBpf()
	if err != nil {
		return nil, fmt.Errorf("kernel probe: reading the embedded programs: %w", err)
	}
	if p.pidNS, err = procfs.OwnNamespace("pid"); err != nil {
		return nil, fmt.Errorf("kernel probe: finding our PID namespace: %w", err)
	}
	p.host = readHostNamespaces()
	p.symbols = new(symbols.Table)
	if o.Detail != DetailCommands {
		p.symbols = symbols.Open()
	}
	p.shape(spec)
	if err := errors.Join(p.constants(spec), p.beliefs(spec)); err != nil {
		return nil, fmt.Errorf("kernel probe: setting options: %w", err)
	}
	if err := spec.LoadAndAssign(&p.objects, nil); err != nil {
		return nil, unsupported(err)
	}
	p.watchAnchors()
	for _, program := range p.programs() {
		l, err := link.AttachTracing(link.TracingOptions{Program: program})
		if err != nil {
			return nil, unsupported(fmt.Errorf("attaching %s: %w", program, err))
		}
		p.links = append(p.links, l)
	}
	kernel, err := btf.LoadKernelSpec() // there is one, or nothing would be loaded
	if err != nil {
		return nil, unsupported(err)
	}
	p.lacking = append(p.lacking, lacking(kernel)...)
	p.openInside(kernel)
	// The kernel's types, which were read for this, are megabytes and of no use any more.
	debug.FreeOSMemory()
	if p.reader, err = ringbuf.NewReader(p.objects.Events); err != nil {
		return nil, fmt.Errorf("kernel probe: opening the ring buffer: %w", err)
	}
	return p, nil
}

// shape sizes the maps that the kernel side's objects share.
func (p *Probe) shape(spec *ebpf.CollectionSpec) {
	spec.Maps["events"].MaxEntries = uint32(p.options.Ring)
	spec.Maps["processes"].MaxEntries = uint32(p.options.Processes)
	spec.Maps["calls"].MaxEntries = uint32(p.options.Processes)
	spec.Maps["accounts"].MaxEntries = uint32(p.options.Processes)
}

// constants sets what both objects are told.
func (p *Probe) constants(spec *ebpf.CollectionSpec) error {
	return errors.Join(
		spec.Variables["pid_ns"].Set(p.pidNS),
		spec.Variables["ring_high"].Set(uint64(p.options.Ring/4)),
		spec.Variables["quota"].Set(quota(p.options.Ring)),
		spec.Variables["root_share"].Set(share(p.options.Processes)),
	)
}

// programs in the order they are attached: an exit without its fork is harmless, a
// fork without its exit would leave a process in the table.
func (p *Probe) programs() []*ebpf.Program {
	return []*ebpf.Program{p.objects.OnExit, p.objects.OnFork, p.objects.OnExec}
}

// Close detaches the kernel side. The programs are gone when the process is, too.
func (p *Probe) Close() error {
	errs := []error{p.inside.close(clock.Monotonic())}
	if p.unwatch != nil {
		p.unwatch()
	}
	for _, l := range p.links {
		errs = append(errs, l.Close())
	}
	if p.symbols != nil {
		errs = append(errs, p.symbols.Close())
	}
	if p.reader != nil {
		errs = append(errs, p.reader.Close())
	}
	return errors.Join(append(errs, p.objects.Close())...)
}

// unsupported explains the errors that operators meet.
func unsupported(err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.Is(err, os.ErrPermission):
		return &UnsupportedError{
			Need:   "the permission to load BPF programs",
			Remedy: "run as root or with CAP_BPF and CAP_PERFMON, outside of lockdown=confidentiality",
			Err:    err,
		}
	case errors.Is(err, os.ErrNotExist), errors.Is(err, ebpf.ErrNotSupported):
		return &UnsupportedError{
			Need:   "a kernel with BTF and BPF ring buffers",
			Remedy: "use Linux 5.8 or later, built with CONFIG_DEBUG_INFO_BTF (/sys/kernel/btf/vmlinux exists)",
			Err:    err,
		}
	case errors.As(err, &verifier) && slices.ContainsFunc(verifier.Log, withheld):
		return &UnsupportedError{
			Need:   "a kernel whose memory BPF programs may read",
			Remedy: "start it without lockdown=confidentiality (lockdown=integrity is enough for Secure Boot)",
			Err:    err,
		}
	case errors.As(err, &verifier):
		return &UnsupportedError{
			Need:   "a kernel that accepts the probe's programs",
			Remedy: "report this with the kernel's version (uname -r)",
			Err:    err,
		}
	}
	return fmt.Errorf("kernel probe: %w", err)
}

// withheld tells whether the verifier says that there is no reading of the kernel's memory.
// Every kernel has the function, and a locked down one keeps it back
// (kernel/trace/bpf_trace.c, LOCKDOWN_BPF_READ_KERNEL). The words differ by version.
func withheld(line string) bool {
	return strings.Contains(line, "unknown func bpf_probe_read") ||
		strings.Contains(line, "cannot use helper bpf_probe_read")
}

// networkOf is the inode number of the network namespace that a process is in; 0 if that
// cannot be asked.
func networkOf(pid uint32) uint32 {
	inode, _ := procfs.Namespace(int(pid), "net")
	return inode
}
