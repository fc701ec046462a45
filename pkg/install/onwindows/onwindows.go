// Package onwindows puts cniscope on a node of Windows and takes it away again: the program, its options in a
// folder that only administrators and the system can open, its service, its source in the event log, and the
// variables by which containerd's service exports its own spans.
//
// A Plan says first what would be done; it is pure but for what it reads of a Node. Applying it does all of it or
// nothing. What somebody else made or changed stays as it is, and what was replaced is kept in the manifest, so
// that the removal leaves everything as it was, byte for byte. containerd is never restarted.
package onwindows

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/configs"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/private"
)

// Kind is a kind of thing that an installation makes or changes.
type Kind string

// The kinds, and what their bytes are.
const (
	Folder      Kind = "folder"      // private.Protected, or empty for what its parent hands down
	File        Kind = "file"        // the file's
	Service     Kind = "service"     // a ServiceConfig as JSON
	EventSource Kind = "eventsource" // the file of the messages
	Environment Kind = "environment" // of a service: NAME=value, one a line
)

// Thing is one thing on a node: a file or folder by its path, everything else by the name of the service.
type Thing struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

func (t Thing) String() string {
	if t.Kind == File || t.Kind == Folder {
		return t.Name
	}
	return string(t.Kind) + " of " + t.Name
}

// Node is a machine, as far as an installation needs it.
type Node interface {
	// Read returns what a thing is; nil if there is none.
	Read(t Thing) ([]byte, error)
	// Write makes a thing be so; nil takes it away. A folder that is not empty stays.
	Write(t Thing, data []byte) error
	// Start starts a service, and returns when it runs; Stop stops one, and reports whether it ran.
	Start(ctx context.Context, service string) error
	Stop(ctx context.Context, service string) (ran bool, err error)
}

// ServiceConfig is how a service is set up.
type ServiceConfig struct {
	Runs        string   `json:"runs"` // the command line
	Starts      string   `json:"starts"`
	Account     string   `json:"account"`
	Name        string   `json:"display_name"`
	Description string   `json:"description"`
	Restarts    []string `json:"restarts_after"` // after the first failure, the second, each later one
	Forgets     string   `json:"forgets_failures_after"`
}

// name is that of the service and of the event source; runtime the service of containerd, as its documentation
// registers it.
const (
	name    = "cniscope"
	runtime = "containerd"
)

// Choice is what can be chosen, and is remembered from one installation to the next.
type Choice struct {
	// Tracing is the URL that containerd exports its own spans to; empty: left as it is.
	Tracing string `json:"containerd_tracing,omitempty"`
}

// Options are what an installation is made with.
type Options struct {
	Choice
	Program      []byte // cniscope.exe
	ProgramFiles string // the folder of that name, and the next: C:\Program Files, C:\ProgramData
	ProgramData  string
}

// manifestFile is where in the folder of options the manifest is.
const manifestFile = `\install.json`

func (o Options) folder() string   { return o.ProgramData + `\cniscope` }
func (o Options) programs() string { return o.ProgramFiles + `\cniscope` }
func (o Options) program() string  { return o.programs() + `\cniscope.exe` }
func (o Options) runs() string     { return `"` + o.program() + `" run` }
func (o Options) options() string  { return o.folder() + `\cniscope.toml` }
func (o Options) manifest() Thing  { return Thing{File, o.folder() + manifestFile} }

// wanted is what there should be.
type wanted struct {
	Thing
	data []byte
	// merges puts what is wanted into what somebody else has there: nil where that stays as it is.
	merges func(now []byte) ([]byte, error)
	// foreign is what is wrong where somebody else has something else there; empty where that stays.
	foreign string
}

// wish is everything that there should be, in the order in which it is made.
func (o Options) wish() []wanted {
	service, _ := json.MarshalIndent(ServiceConfig{ // strings: it cannot fail
		Runs:   o.runs(),
		Starts: "automatic", Account: "LocalSystem", Name: name,
		Description: "Shows where the seconds of a pod's network setup went.",
		Restarts:    []string{"5s", "10s", "1m0s"}, Forgets: "24h0m0s",
	}, "", "  ")
	all := []wanted{
		{Thing: Thing{Folder, o.folder()}, data: []byte(private.Protected), foreign: "others than administrators can open it: look at what is in it, and remove it"},
		{Thing: Thing{Folder, o.programs()}, data: []byte{}},
		{Thing: Thing{File, o.program()}, data: o.Program, foreign: "it is there and was not installed by cniscope install: remove it"},
		{Thing: Thing{File, o.options()}, data: []byte(crlf(config.Explained(configs.Options, config.Windows)))},
		{Thing: Thing{EventSource, name}, data: []byte(`%SystemRoot%\System32\EventCreate.exe` + "\n")},
		{Thing: Thing{Service, name}, data: append(service, '\n'), foreign: "a service of this name is there and was not installed by cniscope install: remove it (sc.exe delete cniscope)"},
	}
	if o.Tracing != "" {
		all = append(all, wanted{Thing: Thing{Environment, runtime}, merges: func(now []byte) ([]byte, error) {
			return set(now, variables(o.Tracing)), nil
		}})
	}
	return all
}

// crlf ends lines as Notepad of older Windows wants them.
func crlf(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// variables have containerd's exporter send to an endpoint. By convention port 4317 speaks gRPC, every other
// OTLP by HTTP (and cniscope's relay both).
func variables(endpoint string) []string {
	protocol := "http/protobuf"
	if strings.HasSuffix(strings.TrimRight(endpoint, "/"), ":4317") {
		protocol = "grpc"
	}
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol}
}

// set sets variables in an environment, whose names have no case on Windows. The others stay, in their order.
func set(environment []byte, variables []string) []byte {
	lines := linesOf(environment)
	for _, v := range variables {
		key, _, _ := strings.Cut(v, "=")
		at := slices.IndexFunc(lines, func(l string) bool {
			k, _, _ := strings.Cut(l, "=")
			return strings.EqualFold(k, key)
		})
		if at < 0 {
			lines = append(lines, v)
		} else {
			lines[at] = v
		}
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// unset takes variables out of an environment that was changed since they were set, and gives those their former
// value that before has. Nil if nothing is left, and there was nothing before.
func unset(environment []byte, variables []string, before []byte) []byte {
	was := linesOf(before)
	var lines []string
	for _, l := range linesOf(environment) {
		if !slices.Contains(variables, l) {
			lines = append(lines, l)
			continue
		}
		key, _, _ := strings.Cut(l, "=")
		for _, w := range was {
			if k, _, _ := strings.Cut(w, "="); strings.EqualFold(k, key) {
				lines = append(lines, w)
			}
		}
	}
	if len(lines) == 0 && before == nil {
		return nil
	}
	if len(lines) == 0 {
		return []byte{}
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

func linesOf(text []byte) []string {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func (o Options) check(n Node) error {
	if o.Tracing == "" {
		return nil
	}
	if !strings.HasPrefix(o.Tracing, "http://") && !strings.HasPrefix(o.Tracing, "https://") || strings.ContainsAny(o.Tracing, "\"' \t\r\n") {
		return fmt.Errorf("--containerd-tracing %q: want a URL as http://127.0.0.1:4317, or off", o.Tracing)
	}
	service, err := n.Read(Thing{Service, runtime})
	if err == nil && service == nil {
		err = errors.New("--containerd-tracing: there is no service containerd; where another service runs containerd (rke2), give that one the variables: " +
			strings.Join(variables(o.Tracing), ", "))
	}
	return err
}
