package gather

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/windows"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/windows/service"
	"github.com/cniscope/cniscope/pkg/windows/trial"
)

func stateOfHNS(context.Context) (string, error) { return service.State("hns") }

// allPipes does not connect.
func allPipes(context.Context) (names []string, err error) {
	pattern, err := windows.UTF16PtrFromString(`\\.\pipe\*`)
	if err != nil {
		return nil, err
	}
	var found windows.Win32finddata
	h, err := windows.FindFirstFile(pattern, &found)
	if err != nil {
		return nil, fmt.Errorf("cannot list the pipes: %w", err)
	}
	defer windows.FindClose(h)
	for err == nil {
		names = append(names, windows.UTF16ToString(found.FileName[:]))
		err = windows.FindNextFile(h, &found)
	}
	if errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		err = nil
	}
	return names, err
}

func try(ctx context.Context) (fact.Trial, error) {
	seen, err := trial.Run(ctx)
	return fact.Trial(seen), err
}
