package onwindows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

// patience is how long a service may take to start or to stop.
const patience = time.Minute

// Start implements Node.
func (h *Here) Start(ctx context.Context, service string) error {
	return with(service, func(s *mgr.Service) error {
		if err := s.Start(); err != nil && !errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
			return err
		}
		return wait(ctx, s, svc.Running)
	})
}

// Stop implements Node.
func (h *Here) Stop(ctx context.Context, service string) (ran bool, err error) {
	err = with(service, func(s *mgr.Service) error {
		if now, err := s.Query(); err != nil || now.State == svc.Stopped {
			return err
		}
		ran = true
		if _, err := s.Control(svc.Stop); err != nil && !errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE) {
			return err
		}
		return wait(ctx, s, svc.Stopped)
	})
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return false, nil
	}
	return ran, err
}

func with(service string, do func(*mgr.Service) error) error {
	m, err := manager()
	if err != nil {
		return err
	}
	defer m.Disconnect() //nolint:errcheck // what was done is done
	s, err := m.OpenService(service)
	if err != nil {
		return err
	}
	defer s.Close()
	return do(s)
}

// wait waits until a service is in a state. The service manager tells of changes, but not under every version.
func wait(ctx context.Context, s *mgr.Service, state svc.State) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		now, err := s.Query()
		switch {
		case err != nil:
			return err
		case now.State == state:
			return nil
		case now.State == svc.Stopped:
			return fmt.Errorf("it ended with %d: see the event log (Get-WinEvent -ProviderName cniscope), or run cniscope run by hand", max(now.Win32ExitCode, now.ServiceSpecificExitCode))
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("interrupted: %w", ctx.Err())
			}
			return fmt.Errorf("it is not in the state that was waited for after %s", patience)
		}
	}
}

// State returns the state of a service as sc.exe has it, in small letters; empty if there is none.
func (h *Here) State(service string) (state string, err error) {
	err = with(service, func(s *mgr.Service) error {
		now, err := s.Query()
		state = map[svc.State]string{
			svc.Stopped: "stopped", svc.StartPending: "start pending", svc.StopPending: "stop pending", svc.Running: "running",
			svc.ContinuePending: "continue pending", svc.PausePending: "pause pending", svc.Paused: "paused",
		}[now.State]
		return err
	})
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		err = nil
	}
	return state, err
}
