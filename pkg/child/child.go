// Package child starts cniscope again, with pipes.
package child

import (
	"os"
	"os/exec"
)

// Self is this program, also after its file was replaced.
const Self = "/proc/self/exe"

// Process is the started process.
type Process struct {
	*exec.Cmd
	In  *os.File   // its standard input
	Out []*os.File // its standard output and its files from 3 on
}

// Start starts a command without environment. Call Wait and Close.
func Start(command []string, outputs int) (_ *Process, err error) {
	p := &Process{Cmd: exec.Command(command[0], command[1:]...)}
	var theirs []*os.File
	defer func() {
		closeAll(theirs)
		if err != nil {
			p.Close()
		}
	}()
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.In, theirs = in, append(theirs, theirIn)
	for range outputs {
		out, theirOut, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.Out, theirs = append(p.Out, out), append(theirs, theirOut)
	}
	if command[0] == Self {
		p.Args[0] = os.Args[0] // for ps
	}
	p.Env, p.Stdin, p.Stdout, p.Stderr, p.ExtraFiles = []string{}, theirs[0], theirs[1], os.Stderr, theirs[2:]
	if err := p.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// Close closes our ends.
func (p *Process) Close() { closeAll(append(p.Out, p.In)) }

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nil is an error
	}
}
