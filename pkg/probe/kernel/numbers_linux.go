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

const numbering = "on_number"

func takeNumbers(spec *ebpf.CollectionSpec) (alone *ebpf.CollectionSpec) {
	alone = spec.Copy()
	delete(spec.Programs, numbering)
	for name := range alone.Programs {
		if name != numbering {
			delete(alone.Programs, name)
		}
	}
	for name := range alone.Maps {
		if !strings.HasPrefix(name, ".") {
			delete(alone.Maps, name)
		}
	}
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
