// A CNI plugin, or an agent, that runs a command from a function. It ends with its standard input.
package main

import (
	"io"
	"os"
	"os/exec"
)

type configurator struct{}

//go:noinline
func (configurator) configureContainerLink() error {
	if err := getNetAdapter("Ethernet 2"); err != nil {
		return err
	}
	return getNetAdapter("vEthernet")
}

func getNetAdapter(string) error { return exec.Command("sleep", "0").Run() } // inlined

func cmdAdd() error { return configurator{}.configureContainerLink() }

func main() {
	done := make(chan error)
	go func() { done <- cmdAdd() }()
	if err := <-done; err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}
