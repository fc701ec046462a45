package kernel

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

type past struct{ connections, servers *link.Iter }

func openPast(programs map[string]*ebpf.Program) (*past, error) {
	connections, err := link.AttachIter(link.IterOptions{Program: programs[lookBack]})
	if err != nil {
		return nil, err
	}
	servers, err := link.AttachIter(link.IterOptions{Program: programs[lookForServers]})
	if err != nil {
		return nil, errors.Join(err, connections.Close())
	}
	p := &past{connections: connections, servers: servers}
	if err := p.look(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// look finds earlier connections and waits, in 1 ms per 1,000 threads and, after a TCP connection, per 10,000
// open files.
func (p *past) look() error {
	if p == nil {
		return nil
	}
	found, err := walk(p.connections)
	if err == nil && found > 0 {
		_, err = walk(p.servers)
	}
	if err != nil {
		return fmt.Errorf("looking for open connections: %w", err)
	}
	return nil
}

func walk(program *link.Iter) (wrote int64, err error) {
	all, err := program.Open()
	if err != nil {
		return 0, err
	}
	defer all.Close()
	return io.Copy(io.Discard, all)
}

func (p *past) close() error {
	if p == nil {
		return nil
	}
	return errors.Join(p.connections.Close(), p.servers.Close())
}
