package node

import (
	"io"

	"github.com/cniscope/cniscope/pkg/windows/service"
)

// ServiceName is cniscope's name in the service manager and the event log (docs/windows.md).
const ServiceName = "cniscope"

func isService() bool { return service.Is() }

// systemLog is the event log, log Application.
func systemLog() (io.Writer, error) { return service.Log(ServiceName) }
