package node

import (
	"io"

	"github.com/cniscope/cniscope/pkg/windows/service"
)

// ServiceName is the name in the service manager and event log (docs/windows.md).
const ServiceName = "cniscope"

func isService() bool { return service.Is() }

func systemLog() (io.Writer, error) { return service.Log(ServiceName) }
