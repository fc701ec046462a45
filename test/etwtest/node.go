package etwtest

import (
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/windows/etw"
)

// Node is a story of processes, recorded by both providers. Times are in ms after the trace's start.
type Node struct {
	kernel, system [][]byte
	lives          map[uint32]etw.Process
	log            [][]byte
}

const (
	nodeBegan = int64(300 * 10_000_000)
	nodeStart = int64(134_398_224_000_000_000)
	ticksOfMS = int64(10_000)
)

// Present is a process that ran before the trace.
func (n *Node) Present(pid, parent uint32, file, line string) {
	n.start(0, etw.Present, pid, parent, file, line)
}

// Began starts a process.
func (n *Node) Began(at int64, pid, parent uint32, file, line string) {
	n.start(at, etw.Start, pid, parent, file, line)
}

func (n *Node) start(at int64, what etw.What, pid, parent uint32, file, line string) {
	if n.lives == nil {
		n.lives = map[uint32]etw.Process{}
	}
	p := etw.Process{
		Provider: etw.SystemProcess, What: what, Version: 4, Time: nodeBegan + at*ticksOfMS + 9, PID: pid, Parent: parent,
		Code: 259, Image: file[strings.LastIndexByte(file, '\\')+1:], CommandLine: line,
	}
	n.system = append(n.system, Entry(Record(p)))
	if what == etw.Start {
		p.Provider, p.Version, p.Time, p.Created = etw.KernelProcess, 5, p.Time-9, nodeStart+at*ticksOfMS
		p.Image = `\Device\HarddiskVolume3` + file
		n.kernel = append(n.kernel, Entry(Record(p)))
	}
	n.lives[pid] = p
}

// Ended ends a process.
func (n *Node) Ended(at int64, pid, code uint32) {
	p := n.lives[pid]
	p.What, p.Time, p.Code = etw.End, nodeBegan+at*ticksOfMS, code
	p.Provider, p.Version = etw.KernelProcess, 2
	p.Image = p.Image[strings.LastIndexByte(p.Image, '\\')+1:]
	n.kernel = append(n.kernel, Entry(Record(p)))
	p.Provider, p.Version, p.Time = etw.SystemProcess, 4, p.Time+7
	n.system = append(n.system, Entry(Record(p)))
}

// Log adds a line of containerd's log, with its error.
func (n *Node) Log(at int64, message, err string) {
	schema := Payload(8, Fields{uint16(0), []byte{0}, ANSI("LogrusMessage")})
	schema = append(schema, Payload(8, Fields{
		ANSI("Message"), []byte{0x82, 35}, ANSI("Time"), []byte{0x91, 38}, ANSI("error"), []byte{0x82, 35},
	})...)
	n.log = append(n.log, event64(etw.Record{
		Provider: etw.ContainerD, Time: nodeBegan + at*ticksOfMS, Payload: Payload(8, Fields{ANSI(message), uint64(nodeStart), ANSI(err)}),
	}, item(11, false, schema)))
}

// File returns the trace.
func (n *Node) File() File {
	return File{
		Began: uint64(nodeBegan), Start: uint64(nodeStart), Compress: true,
		Buffers: [][]byte{slices.Concat(n.system...), slices.Concat(n.kernel...), slices.Concat(n.log...)},
	}
}

// Bytes returns the trace as a file.
func (n *Node) Bytes() []byte { return n.File().Bytes() }

// Seed is a node on which a pod's setup needs 9.4 s: the plugin antrea runs powershell, and antrea-agent runs it twice,
// once for the pod's interface.
func Seed() *Node {
	const shell = `\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`
	n := &Node{}
	n.Present(1000, 600, `\Program Files\containerd\containerd.exe`, `"C:\Program Files\containerd\containerd.exe" --run-service`)
	n.Present(1200, 600, `\k\antrea\bin\antrea-agent.exe`, `C:\k\antrea\bin\antrea-agent.exe --config=C:\k\antrea\etc\antrea-agent.conf`)
	n.Began(50, 1900, 1000, `\Program Files\containerd\containerd-shim-runhcs-v1.exe`,
		`"C:\Program Files\containerd\containerd-shim-runhcs-v1.exe" -namespace k8s.io -id e36af093c591 start`)
	n.Ended(90, 1900, 0)
	n.Began(100, 2000, 1000, `\opt\cni\bin\antrea.exe`, `C:\opt\cni\bin\antrea.exe`)
	n.Began(980, 2004, 2000, shell, `powershell.exe -NoLogo -NoProfile -NonInteractive -Command "Get-NetAdapter -InterfaceAlias 'vEthernet (db-6cqff-1f4e73)'"`)
	n.Began(990, 2006, 2004, `\Windows\System32\conhost.exe`, `\??\C:\Windows\system32\conhost.exe 0xffffffff -ForceV1`)
	n.Ended(3870, 2006, 0)
	n.Ended(3870, 2004, 0)
	n.Began(4090, 2008, 1200, shell, `powershell.exe -NoLogo -NoProfile -NonInteractive -Command "Get-NetAdapter -InterfaceAlias 'vEthernet (db-6cqff-1f4e73)'"`)
	n.Ended(6690, 2008, 0)
	n.Began(6860, 2012, 1200, shell, `powershell.exe -NoExit -Command -`)
	n.Ended(9510, 2012, 0)
	n.Ended(9520, 2000, 0)
	return n
}
