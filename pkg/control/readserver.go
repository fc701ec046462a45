package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/net/netutil"
)

const (
	// readFolder is the folder below the run folder that holds nothing but the read-only socket, so that a
	// container can be given that folder alone.
	readFolder = "read"
	readSocket = "read.sock"
	// remembers marks the answer 404 of one who knows the question, and not the operation.
	remembers = "Cniscope-Remembers"
)

// What readers may take of the process that serves them. It has better things to do.
const (
	readConnections = 32               // open at once; later ones wait in the kernel
	readQuestions   = 4                // answered at once
	readPolls       = 8                // that wait for an operation at once
	readRecordings  = 2                // under way at once
	readHeaders     = 8 << 10          // bytes of a question
	readAnswer      = 15 * time.Second // to take an answer that is there
)

// ReadHandlers answer who may look and change nothing. They are called from several goroutines.
type ReadHandlers struct {
	Node  func() Node
	Calls func() []Call
	// Operations returns what is remembered and wanted. It may take until ctx ends, or Query.Wait is over.
	Operations func(ctx context.Context, q Query) Operations
	// Spans returns the spans of an operation, as a line of OTLP JSON, or an error that wraps ErrNotRemembered.
	Spans func(trace string) ([]byte, error)
	// Doctor returns the document of doctor --format json. It is called once at a time.
	Doctor func(ctx context.Context) ([]byte, error)
	// Record writes a recording of what happens from now on until ctx ends; as Handlers.Record.
	Record func(ctx context.Context, q RecordQuery, w http.ResponseWriter, flush func()) error
}

// ListenRead makes the read-only socket in the folder "read" of the run folder, for root and the members of
// a group. It takes CAP_CHOWN, or a process that is a member of the group.
func ListenRead(dir string, group int) (net.Listener, error) {
	folder := filepath.Join(dir, readFolder)
	if err := os.Mkdir(folder, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("read-only socket: %w", err)
	}
	path := filepath.Join(folder, readSocket)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read-only socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("read-only socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	for _, open := range []struct {
		path string
		mode fs.FileMode
	}{{folder, 0o750}, {path, 0o660}} {
		// The mode first: until the group is set, it is root's group that may.
		err := os.Chmod(open.path, open.mode)
		if err == nil {
			err = os.Chown(open.path, -1, group)
		}
		if err != nil {
			_ = l.Close()
			return nil, fmt.Errorf("read-only socket for group %d: %w; run cniscope with CAP_CHOWN, or with this group among its own (supplementalGroups, SupplementaryGroups=)", group, err)
		}
	}
	return l, nil
}

// ForgetRead removes the read-only socket. As for Forget.
func ForgetRead(dir string) { _ = os.Remove(filepath.Join(dir, readFolder, readSocket)) }

// reads answers questions over the read-only socket.
type reads struct {
	ReadHandlers
	log                        *slog.Logger
	questions, polls, recorded slots
	examined                   examined
}

// slots are places for questions that are answered at once.
type slots chan struct{}

func (s slots) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s slots) free() { <-s }

// ServeRead answers on l until ctx ends. When it returns, everything is closed.
func ServeRead(ctx context.Context, l net.Listener, h ReadHandlers, log *slog.Logger) {
	r := &reads{
		ReadHandlers: h, log: log,
		questions: make(slots, readQuestions), polls: make(slots, readPolls), recorded: make(slots, readRecordings),
		examined: examined{slot: make(slots, 1)},
	}
	server := &http.Server{
		Handler:           r.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second, // no question has a body
		WriteTimeout:      readAnswer,
		IdleTimeout:       5 * time.Second,
		MaxHeaderBytes:    readHeaders,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	if err := serveUntil(ctx, server, netutil.LimitListener(l, readConnections)); err != nil {
		log.Warn("the read-only socket is gone; kubectl cniscope will not work for this node", "error", err)
	}
}

func (s *reads) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/node", s.within(s.questions, s.node))
	mux.HandleFunc("GET /v1/calls", s.within(s.questions, s.calls))
	mux.HandleFunc("GET /v1/operations", s.operations)
	mux.HandleFunc("GET /v1/operations/{trace}/spans", s.within(s.questions, s.spans))
	mux.HandleFunc("GET /v1/doctor", s.within(s.questions, s.doctor))
	mux.HandleFunc("GET /v1/record", s.within(s.recorded, s.record))
	return mux
}

// within answers while there is a place for the question, else says so.
func (s *reads) within(places slots, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !places.take() {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many questions at once: try again in a second", http.StatusServiceUnavailable)
			return
		}
		defer places.free()
		answer(w, r)
	}
}

func (s *reads) node(w http.ResponseWriter, _ *http.Request) { answer(w, s.Node()) }

func (s *reads) calls(w http.ResponseWriter, _ *http.Request) {
	answer(w, append([]Call{}, s.Calls()...))
}

func (s *reads) operations(w http.ResponseWriter, r *http.Request) {
	q, err := queryOf(r, time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	places := s.questions
	if q.Wait > 0 {
		places = s.polls
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(q.Wait + readAnswer))
	}
	s.within(places, func(w http.ResponseWriter, r *http.Request) {
		found := s.Operations(r.Context(), q)
		found.Operations = append([]Line{}, found.Operations...)
		answer(w, found)
	})(w, r)
}

func (s *reads) spans(w http.ResponseWriter, r *http.Request) {
	line, err := s.Spans(r.PathValue("trace"))
	switch {
	case errors.Is(err, ErrNotRemembered):
		w.Header().Set(remembers, "no")
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		raw(w, line)
	}
}

func (s *reads) doctor(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(examinedWithin + readAnswer))
	document, err := s.examined.get(r.Context(), s.Doctor)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	raw(w, document)
}

func (s *reads) record(w http.ResponseWriter, r *http.Request) {
	q, err := recordQueryOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), q.For)
	defer cancel()
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(q.For + readAnswer))
	if err := s.Record(ctx, q, w, func() { _ = control.Flush() }); err != nil && ctx.Err() == nil {
		s.log.Warn("a recording over the read-only socket ended", "error", err)
	}
}

func answer(w http.ResponseWriter, with any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(with) // the asker is gone: nobody to tell
}

func raw(w http.ResponseWriter, document []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(document)
}

// queryOf reads a question for operations.
func queryOf(r *http.Request, now time.Time) (q Query, err error) {
	v := r.URL.Query()
	q.Namespace, q.Pod = v.Get("namespace"), v.Get("pod")
	if s := v.Get("since"); s != "" {
		if q.Since, err = sinceOf(s, now); err != nil {
			return q, err
		}
	}
	if s := v.Get("after"); s != "" {
		if q.After, err = strconv.ParseUint(s, 10, 64); err != nil {
			return q, fmt.Errorf("after=%q: want the number of a line", s)
		}
	}
	if s := v.Get("limit"); s != "" {
		if q.Limit, err = strconv.Atoi(s); err != nil || q.Limit < 0 {
			return q, fmt.Errorf("limit=%q: want a number of lines", s)
		}
	}
	if s := v.Get("wait"); s != "" {
		seconds, err := strconv.ParseFloat(s, 64)
		if err != nil || !(seconds >= 0) {
			return q, fmt.Errorf("wait=%q: want seconds", s)
		}
		q.Wait = time.Duration(min(seconds, MaxWait.Seconds()) * float64(time.Second))
	}
	return q, nil
}

// sinceOf is a time of day, or how long ago.
func sinceOf(s string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(s); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("since=%q: want a time as 2006-01-02T15:04:05Z, or how long ago, as 1h", s)
	}
	return t, nil
}

// recordQueryOf reads a question for a recording.
func recordQueryOf(r *http.Request) (q RecordQuery, err error) {
	v := r.URL.Query()
	q.Namespace, q.Pod = v.Get("namespace"), v.Get("pod")
	q.For, err = time.ParseDuration(v.Get("for"))
	if err != nil || q.For <= 0 {
		return q, fmt.Errorf("for=%q: want a length of time, as 30s", v.Get("for"))
	}
	q.For = min(q.For, MaxRecord)
	return q, nil
}
