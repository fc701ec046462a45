//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/cilium/ebpf"
)

// detach switches the probe of a whole cniscope off beside load, by its configuration file, and on again.
func detach(to io.Writer, _ string, _ int) error {
	run, err := startCniscope("[probe]\ndetail = \"always\"\n")
	if err != nil {
		return err
	}
	programs := 0
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		programs++
	}
	end, err := besideLoad()
	if err != nil {
		return err
	}
	began := time.Now()
	err = os.WriteFile(configFile, []byte(options+"[probe]\nenabled = false\n"), 0o600)
	for ; err == nil; time.Sleep(time.Millisecond) {
		_, err = ebpf.ProgramGetNextID(0)
	}
	took := time.Since(began)
	end()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fmt.Fprintf(to, "\ndetached %d %d\n", programs, took.Microseconds())
	if err := errors.Join(os.WriteFile(configFile, []byte(options), 0o600), run.observed(2)); err != nil {
		return err
	}
	if _, err := finish(command("failing")); err != nil {
		return err
	}
	if err := run.stop(); err != nil {
		return err
	}
	if spans, err := os.ReadFile(exported); err != nil || !bytes.Contains(spans, []byte(`"failing ADD"`)) {
		return fmt.Errorf("exported %.500q: %w, said %s", spans, err, run.said.String())
	}
	return nil
}
