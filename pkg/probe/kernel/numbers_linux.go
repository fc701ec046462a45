package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// numbering is the program that lists processes (bpf/probe.c).
const numbering = "on_number"

// takeNumbers takes the program that lists processes out of the object, to be loaded by itself and
// only where it is needed: without it everything else still works.
func takeNumbers(spec *ebpf.CollectionSpec) (alone *ebpf.CollectionSpec) {
	alone = spec.Copy()
	delete(spec.Programs, numbering)
	for name := range alone.Programs {
		if name != numbering {
			delete(alone.Programs, name)
		}
	}
	for name := range alone.Maps {
		if !strings.HasPrefix(name, ".") { // those are its variables: the namespace's number
			delete(alone.Maps, name)
		}
	}
	return alone
}

// openNumbers loads and attaches what takeNumbers took.
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

// Numbers lists the processes of our PID namespace by both of their numbers. It works only where
// that is not the initial one, and takes 1 ms or so for each thousand threads.
func (s *Side) Numbers() ([]Key, error) {
	if s.numbers == nil {
		return nil, errors.New("the kernel does not list processes")
	}
	list, err := s.numbers.Open()
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	defer list.Close()
	raw, err := io.ReadAll(list)
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	keys := make([]Key, len(raw)/binary.Size(Key{}))
	if err := binary.Read(bytes.NewReader(raw), binary.NativeEndian, keys); err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	return keys, nil
}
