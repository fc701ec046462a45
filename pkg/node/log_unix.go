//go:build unix

package node

import (
	"io"
	"log/syslog"
)

func systemLog() (io.Writer, error) {
	return syslog.New(syslog.LOG_NOTICE|syslog.LOG_DAEMON, "cniscope")
}
