package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cniscope/cniscope/pkg/baseline"
)

var (
	// ErrNotRemembered means that the history lacks the spans.
	ErrNotRemembered = errors.New("the node does not remember it")
	// ErrBusy means too many requests; retry in a second.
	ErrBusy = errors.New("the running cniscope is busy with other questions")
)

// maxAnswer bounds an answer in bytes; all lines of a node are 6 MiB.
const maxAnswer = 64 << 20

// Reader queries a running cniscope.
type Reader struct {
	Path string
}

// DefaultReadSocket is the default read-only socket.
const DefaultReadSocket = "/run/cniscope/read/read.sock"

// Node returns the state. The error wraps ErrNotRunning, ErrBusy or fs.ErrPermission.
func (r Reader) Node(ctx context.Context) (n Node, err error) {
	err = r.decode(ctx, "/v1/node", nil, &n)
	return n, err
}

// APIServer returns the kubelet's API server, host:port.
func (r Reader) APIServer(ctx context.Context) (address string, err error) {
	err = r.decode(ctx, "/v1/apiserver", nil, &address)
	return address, err
}

// Calls returns the calls in progress.
func (r Reader) Calls(ctx context.Context) (calls []Call, err error) {
	err = r.decode(ctx, "/v1/calls", nil, &calls)
	return calls, err
}

// Operations returns finished and hung operations.
func (r Reader) Operations(ctx context.Context, q Query) (found Operations, err error) {
	err = r.decode(ctx, "/v1/operations", q.values(), &found)
	return found, err
}

// Spans returns TracesData of a Line.TraceID, or an error that wraps ErrNotRemembered.
func (r Reader) Spans(ctx context.Context, trace string) ([]byte, error) {
	if trace == "" {
		return nil, ErrNotRemembered
	}
	return r.all(ctx, "/v1/operations/"+url.PathEscape(trace)+"/protobuf", nil)
}

// Doctor returns doctor -o json, up to 30 s old.
func (r Reader) Doctor(ctx context.Context) (json.RawMessage, error) {
	return r.all(ctx, "/v1/doctor", nil)
}

// Record starts a recording of the whole node, for up to MaxRecord.
func (r Reader) Record(ctx context.Context, length time.Duration) (io.ReadCloser, error) {
	return r.get(ctx, "/v1/record", url.Values{"for": {length.String()}})
}

func (q Query) values() url.Values {
	v := url.Values{}
	set(v, "namespace", q.Namespace)
	set(v, "pod", q.Pod)
	if q.Problems {
		v.Set("problems", "true")
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if q.After > 0 {
		v.Set("after", strconv.FormatUint(q.After, 10))
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Wait > 0 {
		v.Set("wait", strconv.FormatFloat(q.Wait.Seconds(), 'f', -1, 64))
	}
	return v
}

func set(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

func (r Reader) decode(ctx context.Context, path string, query url.Values, to any) error {
	body, err := r.all(ctx, path, query)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, to); err != nil {
		return fmt.Errorf("cannot read the answer of the running cniscope: %w", err)
	}
	return nil
}

func (r Reader) all(ctx context.Context, path string, query url.Values) ([]byte, error) {
	body, err := r.get(ctx, path, query)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	all, err := io.ReadAll(io.LimitReader(body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("cannot read the answer of the running cniscope: %w", err)
	}
	return all, nil
}

func (r Reader) get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	refused := asRoot
	if filepath.Base(r.Path) == ReadSocket {
		refused += ", or as a member of the group that [control] read_group names"
	}
	return ask(ctx, r.Path, path+"?"+query.Encode(), refused)
}

func ask(ctx context.Context, socket, question, refused string) (io.ReadCloser, error) {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return connect(ctx, socket)
		},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://cniscope"+question, nil)
	if err != nil {
		return nil, err
	}
	answer, err := transport.RoundTrip(request)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%w (%s)", ErrNotRunning, socket)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("cannot query the running cniscope: %w; %s", err, refused)
	case err != nil:
		return nil, fmt.Errorf("cannot query the running cniscope: %w", err)
	case answer.StatusCode == http.StatusOK:
		return answer.Body, nil
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	return nil, refusal(answer, strings.TrimSpace(string(said)))
}

func refusal(answer *http.Response, said string) error {
	switch answer.StatusCode {
	case http.StatusServiceUnavailable:
		return fmt.Errorf("%w: %s", ErrBusy, said)
	case http.StatusNotFound:
		if answer.Header.Get(remembers) != "" {
			return fmt.Errorf("%w: %s", ErrNotRemembered, said)
		}
	case http.StatusBadRequest:
		return fmt.Errorf("the running cniscope rejected the query: %s", said)
	case http.StatusInternalServerError:
		return fmt.Errorf("the running cniscope cannot answer: %s", said)
	}
	return fmt.Errorf("the running cniscope answered %s; restart it to match this version", answer.Status)
}

// ErrNotRunning means that no cniscope answers.
var ErrNotRunning = errors.New("no cniscope is running on this node")

// Client queries the cniscope with state directory Dir.
type Client struct{ Dir string }

func (c Client) reader() Reader { return Reader{Address(c.Dir)} }

// Calls returns calls in progress. The error wraps ErrNotRunning, or fs.ErrPermission unless root.
func (c Client) Calls(ctx context.Context) (calls []Call, err error) {
	err = c.reader().decode(ctx, "/calls", nil, &calls)
	return calls, err
}

// Node returns the running cniscope's state. Errors as for Calls.
func (c Client) Node(ctx context.Context) (n Node, err error) {
	err = c.reader().decode(ctx, "/node", nil, &n)
	return n, err
}

// Recent returns facts about finished calls. Errors as for Calls.
func (c Client) Recent(ctx context.Context) (r Recent, err error) {
	err = c.reader().decode(ctx, "/recent", nil, &r)
	return r, err
}

// Baseline returns the node's baselines. Errors as for Calls.
func (c Client) Baseline(ctx context.Context) (*baseline.Document, error) {
	data, err := c.reader().all(ctx, "/baseline", nil)
	if err != nil {
		return nil, err
	}
	return baseline.Parse(data)
}

// Record records until ctx ends. Errors as for Calls.
func (c Client) Record(ctx context.Context) (io.ReadCloser, error) {
	return c.reader().get(ctx, "/record", nil)
}
