package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

const numbering = "on_number"

func takeNumbers(spec *ebpf.CollectionSpec) (alone *ebpf.CollectionSpec) {
	alone = spec.Copy()
	delete(spec.Programs, numbering)
	maps.DeleteFunc(alone.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return name != numbering })
	maps.DeleteFunc(alone.Maps, func(name string, _ *ebpf.MapSpec) bool { return !strings.HasPrefix(name, ".") })
	return alone
}

func (s *Side) openNumbers(alone *ebpf.CollectionSpec) error {
	c, err := newCollection(alone, ebpf.CollectionOptions{})
	if err != nil {
		return fmt.Errorf("loading what lists processes: %w", err)
	}
	s.loaded = append(s.loaded, c)
	if s.numbers, err = link.AttachIter(link.IterOptions{Program: c.Programs[numbering]}); err != nil {
		return fmt.Errorf("attaching what lists processes: %w", err)
	}
	return nil
}

// Numbers lists our PID namespace's processes, in 1 ms per 1,000 threads. It fails in the initial namespace.
func (s *Side) Numbers() (keys []Key, err error) {
	if s.numbers == nil {
		return nil, errors.New("the kernel does not list processes")
	}
	list, err := s.numbers.Open()
	if err != nil {
		return nil, err
	}
	defer list.Close()
	raw, err := io.ReadAll(list)
	if err != nil {
		return nil, err
	}
	keys = make([]Key, len(raw)/binary.Size(Key{}))
	_, err = binary.Decode(raw, binary.NativeEndian, keys)
	return keys, err
}

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
