// The program whose stack TestGoProgramsNameTheirCalls names: it prints the addresses of a stack, and what the Go
// runtime calls them.
package main

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
)

type call struct {
	PC       uint64
	Function string
	File     string
	Line     int
}

type configurator[T any] struct{ calls []call }

//go:noinline
func (c *configurator[T]) configureContainerLink() { getNetAdapter(c.look) }

func getNetAdapter(look func()) { twice(look) } // inlined

func twice(look func()) { // inlined
	look()
}

//go:noinline
func (c *configurator[T]) look() {
	pcs := make([]uintptr, 32)
	pcs = pcs[:runtime.Callers(1, pcs)]
	frames := runtime.CallersFrames(pcs)
	for _, pc := range pcs {
		f, _ := frames.Next()
		c.calls = append(c.calls, call{uint64(pc), f.Function, f.File, f.Line})
	}
}

func main() {
	c := &configurator[int]{}
	func() {
		slices.SortFunc([]int{2, 1}, func(int, int) int { c.calls = nil; c.configureContainerLink(); return 0 })
	}()
	_ = json.NewEncoder(os.Stdout).Encode(c.calls)
	stat, _ := os.ReadFile("/proc/self/stat")
	os.Stdout.Write(stat)
}
