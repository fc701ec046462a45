//go:build !windows

package node

import (
	"io"
	"log/syslog"
)

func isService() bool { return false }

func systemLog() (io.Writer, error) {
	return syslog.New(syslog.LOG_NOTICE|syslog.LOG_DAEMON, "cniscope")
}
