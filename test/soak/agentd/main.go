//go:build linux

// Agentd is the soak's agent and its plugin, selected by file name. It delays pods by name, and keeps a journal.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cniscope/cniscope/test/soak/agentd/protocol"
)

func main() {
	do := plug
	if filepath.Base(os.Args[0]) == protocol.Agent {
		do = serve
	}
	if err := do(); err != nil {
		// CNI specification, Error.
		fmt.Printf(`{"cniVersion":"1.0.0","code":11,"msg":%q}`, err.Error())
		os.Exit(1)
	}
}

// plug forwards a call to the agent. A DEL succeeds without one, so that no pod remains because of a dead agent.
func plug() error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var conf struct {
		Agent      string
		PrevResult json.RawMessage
	}
	if err := json.Unmarshal(text, &conf); err != nil {
		return err
	}
	ask := protocol.Request{Command: os.Getenv("CNI_COMMAND"), Container: os.Getenv("CNI_CONTAINERID"), Args: os.Getenv("CNI_ARGS")}
	if ask.Command == "VERSION" {
		fmt.Print(`{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}`)
		return nil
	}
	for until := time.Now().Add(protocol.Patience); ; time.Sleep(100 * time.Millisecond) {
		err = call(conf.Agent, ask)
		if err == nil || ask.Command == "DEL" || time.Now().After(until) {
			break
		}
	}
	switch {
	case ask.Command == "DEL":
		return nil
	case err != nil:
		return fmt.Errorf("the agent does not answer: %w", err)
	case ask.Command == "ADD":
		_, err = os.Stdout.Write(conf.PrevResult)
	}
	return err
}

func call(socket string, ask protocol.Request) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(ask); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && answer != protocol.Done {
		err = errors.New(strings.TrimSpace(answer))
	}
	return err
}

// serve answers plugins; its arguments are the socket and the journal.
func serve() error {
	socket, file := os.Args[1], os.Args[2]
	journal, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go answer(conn, journal)
	}
}

func answer(conn net.Conn, journal io.Writer) {
	defer conn.Close()
	var ask protocol.Request
	if err := json.NewDecoder(conn).Decode(&ask); err != nil {
		return
	}
	e := protocol.Entry{Request: ask, Start: protocol.Now()}
	if ask.Command == "ADD" && strings.Contains(ask.Args, protocol.Late) {
		time.Sleep(protocol.LateBy)
	}
	e.End = protocol.Now()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = journal.Write(append(line, '\n'))
	}
	if err == nil {
		_, _ = io.WriteString(conn, protocol.Done) // the plugin may have exited
	}
}
