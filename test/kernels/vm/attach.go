//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

func loadedPrograms() (map[string]*ebpf.Program, error) {
	all := map[string]*ebpf.Program{}
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, fs.ErrNotExist) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		id = next
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			return nil, err
		}
		info, err := p.Info()
		if err != nil {
			return nil, err
		}
		all[info.Name] = p
	}
}

// forget closes programs, which otherwise stay loaded.
func forget(programs map[string]*ebpf.Program) {
	for _, p := range programs {
		_ = p.Close()
	}
}

// attaching attaches all loaded programs like a probe during a call, and detaches them when standard input ends.
func attaching() int {
	programs, err := loadedPrograms()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var links []link.Link
	began := time.Now()
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		if !strings.HasPrefix(name, "on_") { // on_return is a tail call
			continue
		}
		l, err := link.AttachTracing(link.TracingOptions{Program: programs[name]})
		if err != nil {
			fmt.Fprintf(os.Stderr, "attaching %s: %v\n", name, err)
			return 1
		}
		links = append(links, l)
	}
	fmt.Println("attached", len(links), time.Since(began).Microseconds())
	_, _ = io.Copy(io.Discard, os.Stdin)
	for _, l := range links {
		err = errors.Join(err, l.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func attachOnce(to io.Writer, kill bool) error {
	p, err := startProber("attaching")
	if err != nil {
		return err
	}
	said, err := p.until("attached")
	if err != nil {
		return err
	}
	time.Sleep(restOfStarts) // by then each other process used the functions
	took, how, err := p.stop(kill)
	if err == nil {
		_, err = fmt.Fprintf(to, "\nattached %s %s %d\n", said, how, took.Microseconds())
	}
	return err
}

func (p *prober) stop(kill bool) (took time.Duration, how string, err error) {
	began, how := time.Now(), "closed"
	if kill {
		how, err = "killed", p.Process.Kill()
	} else {
		err = p.end.Close()
	}
	if err != nil {
		return 0, how, err
	}
	if err := p.Wait(); err != nil && !kill {
		return 0, how, err
	}
	return time.Since(began), how, nil
}
