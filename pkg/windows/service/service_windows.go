// Package service runs a program as a Windows service, and reads other services' states.
package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

// Program works until ctx ends. It calls up once ready.
type Program func(ctx context.Context, up func()) (code int)

// Run runs program as service name. patience bounds the time after its context ended.
func Run(name string, patience time.Duration, program Program) (code int, err error) {
	s := service{program: program, patience: patience}
	if err := svc.Run(name, &s); err != nil {
		return 1, fmt.Errorf("answering the service manager: %w", err)
	}
	return s.code, nil
}

// State returns a service's state in sc.exe's words, in lower case, or "".
func State(name string) (string, error) {
	m, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	if err != nil {
		return "", fmt.Errorf("connecting to the service manager: %w", err)
	}
	defer windows.CloseServiceHandle(m) //nolint:errcheck // it was only asked
	wide, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return "", err
	}
	h, err := windows.OpenService(m, wide, windows.SERVICE_QUERY_STATUS)
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("opening service %s: %w", name, err)
	}
	s := mgr.Service{Name: name, Handle: h}
	defer s.Close()
	now, err := s.Query()
	return map[svc.State]string{
		svc.Stopped: "stopped", svc.StartPending: "start pending", svc.StopPending: "stop pending", svc.Running: "running",
		svc.ContinuePending: "continue pending", svc.PausePending: "pause pending", svc.Paused: "paused",
	}[now.State], err
}

// Is reports whether the service manager started this process. svc.IsWindowsService also requires session 0, which
// Wine lacks.
func Is() bool {
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

// service implements svc.Handler. It handles no signals: Windows also sends them when a user logs off.
type service struct {
	program  Program
	patience time.Duration
	code     int // exit code of the program
}

// checkEvery is the interval of status reports; the service manager waits twice as long.
const checkEvery = 5 * time.Second

// Execute implements svc.Handler, running from program's call of up until its return.
func (s *service) Execute(_ []string, requests <-chan svc.ChangeRequest, tell chan<- svc.Status) (specific bool,
	code uint32,
) {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	started := make(chan struct{})
	ended := make(chan int, 1)
	go func() { ended <- s.program(ctx, sync.OnceFunc(func() { close(started) })) }()
	now := svc.Status{State: svc.StartPending, WaitHint: uint32(2 * checkEvery / time.Millisecond)}
	tell <- now
	again := time.NewTicker(checkEvery)
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
				now = svc.Status{State: svc.StopPending, WaitHint: uint32(s.patience / time.Millisecond)}
				tell <- now
				end()
			}
		case s.code = <-ended:
			return s.code != 0, uint32(s.code)
		}
	}
}
