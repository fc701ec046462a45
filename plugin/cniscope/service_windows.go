package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
)

// serviceName is what the service manager of Windows, and its event log, know cniscope as.
const (
	serviceKind = "service"
	serviceName = "cniscope"
)

// withStarted has tellStarted call up.
func withStarted(ctx context.Context, up func()) context.Context {
	return context.WithValue(ctx, startedKey{}, up)
}

// asService runs the program as a service, if the service manager has started this process.
func asService(program func(context.Context) int) (code int, is bool) {
	if !isService() {
		return 0, false
	}
	s := service{program: program}
	if err := svc.Run(serviceName, &s); err != nil {
		fmt.Fprintln(os.Stderr, "cniscope: answering the service manager:", err)
		return 1, true
	}
	return s.code, true
}

// isService reports whether the service manager has started this process. svc.IsWindowsService also wants the manager
// to be in session 0, where wine does not have it.
func isService() bool {
	if is, err := svc.IsWindowsService(); err == nil && is {
		return true
	}
	parent, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(os.Getppid()))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(parent) //nolint:errcheck // it was only asked
	name := make([]uint16, windows.MAX_PATH)
	length := uint32(len(name))
	system, err := windows.GetSystemDirectory()
	if err != nil || windows.QueryFullProcessImageName(parent, 0, &name[0], &length) != nil {
		return false
	}
	return strings.EqualFold(windows.UTF16ToString(name[:length]), filepath.Join(system, "services.exe"))
}

// service answers the service manager while the program runs. It takes no signals: Windows sends those also to
// services when a user logs off.
type service struct {
	program func(context.Context) int
	code    int // what the program ended with
}

// patient is how often the manager is told that a change of state goes on, and half of how long it may take to be
// told so.
const patient = 5 * time.Second

// Execute implements svc.Handler. The service runs from when the program says so (tellStarted) until it has ended.
func (s *service) Execute(_ []string, requests <-chan svc.ChangeRequest, tell chan<- svc.Status) (specific bool, code uint32) {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	started := make(chan struct{})
	ended := make(chan int, 1)
	go func() { ended <- s.program(withStarted(ctx, sync.OnceFunc(func() { close(started) }))) }()
	now := svc.Status{State: svc.StartPending, WaitHint: uint32(2 * patient / time.Millisecond)}
	tell <- now
	again := time.NewTicker(patient)
	defer again.Stop()
	for {
		select {
		case <-started:
			started = nil
			if now.State == svc.StartPending {
				now = svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown | svc.AcceptPreShutdown}
				tell <- now
			}
		case <-again.C:
			if now.State == svc.StartPending || now.State == svc.StopPending {
				now.CheckPoint++
				tell <- now
			}
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				tell <- now
			case svc.Stop, svc.Shutdown, svc.PreShutdown:
				now = svc.Status{State: svc.StopPending, WaitHint: uint32(shutdownMax() / time.Millisecond)}
				tell <- now
				end()
			}
		case s.code = <-ended:
			return s.code != 0, uint32(s.code)
		}
	}
}
