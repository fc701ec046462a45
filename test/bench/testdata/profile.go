package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"strings"
	"syscall"
)

// init profiles into CNISCOPE_PROFILE from one SIGUSR2 to the next (make bench BENCH_ONLY=profile).
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
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR2)
	go func() {
		<-asked
		if err := pprof.StartCPUProfile(cpu); err != nil {
			fmt.Fprintln(os.Stderr, "profile:", err)
			return
		}
		_ = os.WriteFile(dir+"/begun", nil, 0o600)
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
		_ = os.WriteFile(dir+"/memory", heldByGo(), 0o600)
		_ = os.WriteFile(dir+"/done", nil, 0o600)
	}()
	return nil
}

func heldByGo() (text []byte) {
	for _, d := range metrics.All() {
		if !strings.HasPrefix(d.Name, "/memory/") && !strings.HasPrefix(d.Name, "/gc/") {
			continue
		}
		sample := []metrics.Sample{{Name: d.Name}}
		metrics.Read(sample)
		if v := sample[0].Value; v.Kind() == metrics.KindUint64 {
			text = fmt.Appendf(text, "%10d %s\n", v.Uint64(), d.Name)
		}
	}
	return text
}
