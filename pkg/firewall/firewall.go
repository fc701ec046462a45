// Package firewall lists the node's chains in a process of its own. That needs CAP_NET_ADMIN, which cniscope drops; the
// process keeps it, reads nothing but a wish for the list, and ends with cniscope.
package firewall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/cniscope/cniscope/pkg/child"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/doctor/gather"
	"github.com/cniscope/cniscope/pkg/privilege"
)

// within bounds a listing: 100,000 rules are read in less than a second.
const within = 5 * time.Second

type answer struct {
	Chains []fact.Chain
	Error  string
}

// Process is the process. Only one goroutine may use it.
type Process struct {
	*child.Process
	say *json.Encoder
	get *json.Decoder
}

// Start starts the command, which calls Serve.
func Start(command []string) (*Process, error) {
	c, err := child.Start(command, 1)
	if err != nil {
		return nil, err
	}
	go func() { _ = c.Wait() }()
	return &Process{c, json.NewEncoder(c.In), json.NewDecoder(c.Out[0])}, nil
}

// Chains lists the chains. After an error the process is of no more use.
func (p *Process) Chains(context.Context) ([]fact.Chain, error) {
	late := time.Now().Add(within)
	_, _ = p.In.SetWriteDeadline(late), p.Out[0].SetReadDeadline(late)
	var a answer
	if err := errors.Join(p.say.Encode(true), p.get.Decode(&a)); err != nil {
		p.Close()
		return nil, fmt.Errorf("the process that lists the chains: %w", err)
	}
	if a.Error != "" {
		return a.Chains, errors.New(a.Error)
	}
	return a.Chains, nil
}

// Serve answers until standard input ends.
func Serve() error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // the parent ends us
	runtime.GOMAXPROCS(1)
	if err := privilege.DropButNetwork(); err != nil {
		return err
	}
	return serve(os.Stdin, os.Stdout, gather.Chains)
}

func serve(in io.Reader, out io.Writer, list func(context.Context) ([]fact.Chain, error)) error {
	wishes, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		debug.FreeOSMemory()
		var wish bool
		if err := wishes.Decode(&wish); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var a answer
		all, err := list(context.Background())
		if err != nil {
			a.Error = fact.Clean(err.Error())
		}
		for _, c := range all { // others may be many
			if c.Matters() {
				a.Chains = append(a.Chains, c)
			}
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}
