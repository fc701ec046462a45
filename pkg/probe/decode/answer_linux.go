package decode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// maxStream bounds input and output: twice the largest real configuration.
	maxStream = 32 << 10
	// maxListed bounds each list of a result.
	maxListed = 16
)

type streams struct {
	// inodes of the run's pipes; those between a script's helpers are ignored
	from, to   uint64
	in, out    bytes.Buffer
	said       []byte // on standard error
	cut        bool   // incomplete output
	configured bool
	known      *redact.Call
}

// told has the exported fields of types.PluginConf. The largest other one is the previous result.
type told struct {
	CNIVersion string `json:"cniVersion"`
	Name       string `json:"name"`
	Type       string `json:"type"`
	Master     string `json:"master"`
	IPAM       struct {
		types.IPAM
		DataDir string `json:"dataDir"`
	} `json:"ipam"`
}

// configuration returns nil until the input is complete.
func (s *streams) configuration(p event.Process) *event.Configuration {
	var c told
	if json.Unmarshal(s.in.Bytes(), &c) != nil {
		return nil
	}
	s.configured = true
	s.known.Configuration(s.in.Bytes())
	s.in = bytes.Buffer{}
	return &event.Configuration{
		Process: p,
		Network: text.Clean(c.Name, 128), Type: text.Clean(c.Type, 128),
		CNIVersion: text.Clean(c.CNIVersion, 16), IPAM: text.Clean(c.IPAM.Type, 128),
		Master:  text.Clean(s.known.Word(c.Master), 16),
		DataDir: s.known.Path(text.Clean(c.IPAM.DataDir, text.Bound)),
	}
}

// reopen: the next image may have another input, but the output remains the run's.
func (s *streams) reopen(from uint64) {
	if s == nil || s.from == from {
		return
	}
	s.from, s.configured = from, false
	s.known.Await()
	s.in.Reset()
}

func (s *streams) finish(now int64, b *event.Exit) []event.Event {
	r := &event.Result{Process: b.Process}
	out := bytes.TrimSpace(s.out.Bytes())
	answered := len(out) > 0 && !s.cut
	if answered {
		r = result(b.Process, out, s.known)
	}
	if failed := b.Code != 0 || b.Signal != ""; failed && r.Message == "" {
		words, file, line := lastWords(string(s.said))
		crashed := strings.HasPrefix(words, "panic: ") || strings.HasPrefix(words, "fatal error: ")
		if r.Invalid != "" && !crashed {
			words, _, _ = lastWords(string(out)) // as the runtime
			r.Message = text.Clean(s.known.Message(words), 512)
			words, file = "", ""
		}
		r.Stderr = text.Clean(s.known.Message(words), 512)
		if file != "" { // a line's number is no secret
			r.Stderr += text.Clean(fmt.Sprintf(" (%s:%s)", s.known.Message(file), line), 128)
		}
	}
	if !answered && r.Stderr == "" {
		return nil
	}
	return []event.Event{{Time: now, Body: r}}
}

// result reads a result or an error (CNI specification, section 5).
func result(p event.Process, out []byte, known *redact.Call) *event.Result {
	r := &event.Result{Process: p}
	var either struct {
		CNIVersion string `json:"cniVersion"`
		Code       *uint  `json:"code"`
		Msg        string `json:"msg"`
		Details    string `json:"details"`
	}
	if err := json.Unmarshal(out, &either); err != nil {
		r.Invalid = invalid(err, out)
		return r
	}
	r.CNIVersion = text.Clean(known.Word(either.CNIVersion), 16)
	if either.Code != nil {
		r.Code = uint32(*either.Code)
		// half a secret is not recognized
		r.Message = text.Clean(known.Message(either.Msg), 512)
		if either.Details != "" {
			r.Message += text.Clean("; "+known.Message(either.Details), 512)
		}
		return r
	}
	made, err := create.Create(cmp.Or(either.CNIVersion, "0.1.0"), out)
	if err != nil {
		return r // VERSION, or an unknown version
	}
	all, err := types100.GetResult(made)
	if err != nil {
		return r
	}
	for _, ip := range all.IPs[:min(len(all.IPs), maxListed)] {
		r.IPs = append(r.IPs, known.Word(ip.Address.String()))
	}
	for _, i := range all.Interfaces[:min(len(all.Interfaces), maxListed)] {
		r.Interfaces = append(r.Interfaces, text.Clean(object(known, i.Name), 32))
	}
	for _, route := range all.Routes[:min(len(all.Routes), maxListed)] {
		if known.Harmless(route.Dst.String()) && (route.GW == nil || known.Harmless(route.GW.String())) {
			r.Routes = append(r.Routes, text.Clean(routed(route), 128))
		}
	}
	return r
}

func routed(r *types.Route) string {
	if r.GW == nil {
		return r.Dst.String()
	}
	return r.Dst.String() + " via " + r.GW.String()
}

// invalid describes a malformed answer without the library's error, which would repeat it.
func invalid(err error, out []byte) string {
	if syntax, is := errors.AsType[*json.SyntaxError](err); is {
		return fmt.Sprintf("no valid JSON at byte %d of %d", syntax.Offset, len(out))
	}
	if kind, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		value, _, _ := strings.Cut(kind.Value, " ")
		return fmt.Sprintf("a JSON %s where a %s should be", value, kind.Type)
	}
	return "no valid JSON"
}

const (
	// onStderr is call_event.out for standard error.
	onStderr = 2
	maxSaid  = 8 << 10
)

var (
	goFrame     = regexp.MustCompile(`(?m)^\t(\S+\.go):(\d{1,6}) `)
	pythonFrame = regexp.MustCompile(`(?m)^  File "([^"]+)", line (\d{1,6}),`)
)

// lastWords returns why a program ended: from standard error, Go's panic or fatal error or Python's exception, with
// the line of its own code, else the last line.
func lastWords(said string) (words, file, line string) {
	lineAt := func(at int) string { first, _, _ := strings.Cut(said[at:], "\n"); return strings.TrimSpace(first) }
	for _, how := range []string{"panic: ", "fatal error: "} {
		if at := strings.Index("\n"+said, "\n"+how); at >= 0 {
			file, line = firstOwn(said[at:])
			return strings.TrimSuffix(lineAt(at), " [recovered]"), file, line
		}
	}
	said = strings.TrimRight(said, " \n")
	frames := pythonFrame.FindAllStringSubmatch(said, -1)
	if len(frames) > 0 && strings.Contains(said, "Traceback (most recent call last)") {
		file, line = path.Base(frames[len(frames)-1][1]), frames[len(frames)-1][2]
	}
	return lineAt(strings.LastIndex(said, "\n") + 1), file, line
}

func firstOwn(stack string) (file, line string) {
	for _, frame := range goFrame.FindAllStringSubmatch(stack, -1) {
		if !strings.Contains(frame[1], "/runtime/") {
			return path.Base(frame[1]), frame[2]
		}
	}
	return "", ""
}
