package relay

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(strangerTo); addr != "" {
		strange(addr)
		return
	}
	goleak.VerifyTestMain(m)
}

// strangerTo is the relay's address for a child process, strangerHas the number of its connections.
const (
	strangerTo  = "CNISCOPE_TEST_STRANGER"
	strangerHas = "CNISCOPE_TEST_STRANGER_HAS"
)

// strange opens unfriendly connections of every kind, posts its input, and prints the answer. Connections stay open
// until its input ends.
func strange(addr string) {
	var connections int
	_, _ = fmt.Sscan(os.Getenv(strangerHas), &connections)
	in := bufio.NewReader(os.Stdin)
	var length int
	_, _ = fmt.Fscanln(in, &length)
	body := make([]byte, length)
	_, _ = io.ReadFull(in, body)
	var open []net.Conn
	for i := range connections {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			continue
		}
		open = append(open, c)
		switch i % 4 {
		case 0:
		case 1:
			_, _ = io.WriteString(c,
				"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 10\r\n\r\n")
		case 2:
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nX-Huge: "+strings.Repeat("x", 64<<10))
		case 3:
			_ = c.(*net.TCPConn).CloseWrite()
		}
	}
	answer, err := http.Post("http://"+addr+"/v1/traces", "application/x-protobuf", bytes.NewReader(body))
	if err == nil {
		_ = answer.Body.Close()
		fmt.Println("answered", answer.StatusCode)
	} else {
		fmt.Println("not answered")
	}
	_, _ = in.ReadByte()
	for _, c := range open {
		_ = c.Close()
	}
}
