package config

import (
	"net"
	"strconv"
	"strings"
)

// Metrics is where counts and health are served.
type Metrics struct {
	// Listen is host:port, or :port for every address of the node; empty where nothing
	// is served.
	Listen string
}

const listenRemedy = `write "127.0.0.1:9471", or ":9471" for every address of the node`

// listen is an address to listen on; empty for none.
func listen() kind[string] {
	return words(func(s string) *fault {
		if s == "" {
			return nil
		}
		host, port, err := net.SplitHostPort(s)
		if err != nil || strings.ContainsAny(host, "/?#@\\ ") {
			return wrong(listenRemedy, "%s is not a host and a port", quoted(s))
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return wrong(listenRemedy, "%s is not a port", quoted(port))
		}
		return nil
	})
}
