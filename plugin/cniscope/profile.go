//go:build profile

package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"syscall"
)

// Where it is built with the tag "profile", as make bench BENCH_ONLY=profile does, cniscope writes what it spends its
// CPU on, and what it holds, into the folder that CNISCOPE_PROFILE names: from the start until SIGUSR2.
func init() {
	dir := os.Getenv("CNISCOPE_PROFILE")
	if dir == "" {
		return
	}
	if err := profileTo(dir); err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
	}
}

func profileTo(dir string) error {
	cpu, err := os.Create(dir + "/cpu")
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR2)
	go func() {
		<-asked
		pprof.StopCPUProfile()
		runtime.GC()
		for _, name := range []string{"heap", "allocs"} {
			if f, err := os.Create(dir + "/" + name); err == nil {
				_ = pprof.Lookup(name).WriteTo(f, 0)
				_ = f.Close()
			}
		}
		_ = cpu.Close()
		_ = os.WriteFile(dir+"/done", nil, 0o600)
	}()
	return nil
}
