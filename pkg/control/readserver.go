package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/netutil"

	"github.com/cniscope/cniscope/pkg/serve"
)

const (
	// ReadSocket is in its own directory, for containers to mount.
	ReadSocket = "read.sock"
	// remembers marks a 404 about an operation; without it the request is unknown.
	remembers = "Cniscope-Remembers"
)

const readHeaders = 8 << 10

// ReadHandlers answer read-only requests, concurrently.
type ReadHandlers struct {
	Node  func() Node
	Calls func() []Call
	// Operations may block for Query.Wait, until ctx ends.
	Operations func(ctx context.Context, q Query) Found
	// Spans returns TracesData; the error wraps ErrNotRemembered.
	Spans  func(trace string) ([]byte, error)
	Doctor func(ctx context.Context) ([]byte, error)
	// APIServer returns host:port.
	APIServer func() (string, error)
	// Record records until ctx ends, and calls flush to send what there is.
	Record func(ctx context.Context, w http.ResponseWriter, flush func()) error
}

type reads struct {
	ReadHandlers
	bounds
	log *slog.Logger
}

// ServeRead serves l until ctx ends.
func ServeRead(ctx context.Context, l net.Listener, h ReadHandlers, log *slog.Logger) {
	(&reads{ReadHandlers: h, bounds: readBounds(), log: log}).serve(ctx, l)
}

func (s *reads) serve(ctx context.Context, l net.Listener) {
	server := &http.Server{
		Handler:        s.handler(),
		ReadTimeout:    s.idle, // of the headers: requests have no body
		WriteTimeout:   s.patience + s.answer,
		IdleTimeout:    s.idle,
		MaxHeaderBytes: readHeaders,
		BaseContext:    func(net.Listener) context.Context { return ctx },
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	if err := serve.Until(ctx, server, netutil.LimitListener(l, s.connections), farewell); err != nil {
		s.log.Warn("the read-only socket is gone; kubectl cniscope will not work for this node", "error", err)
	}
}

func (s *reads) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/node", s.within(s.questions, s.node))
	mux.HandleFunc("GET /v1/apiserver", s.within(s.questions, s.apiServer))
	mux.HandleFunc("GET /v1/calls", s.within(s.questions, s.calls))
	mux.HandleFunc("GET /v1/operations", s.operations)
	mux.HandleFunc("GET /v1/operations/{trace}/protobuf", s.within(s.whole, s.spans))
	mux.HandleFunc("GET /v1/doctor", s.within(s.examined, s.doctor))
	mux.HandleFunc("GET /v1/record", s.within(s.recordings, s.record))
	return mux
}

func (s *reads) within(p places, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		leave := p.take(r.Context(), s.patience)
		if leave == nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many questions at once: try again in a second", http.StatusServiceUnavailable)
			return
		}
		defer leave()
		answer(w, r)
	}
}

func (s *reads) node(w http.ResponseWriter, _ *http.Request) { answer(w, s.Node()) }

func (s *reads) apiServer(w http.ResponseWriter, _ *http.Request) {
	address, err := s.APIServer()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, address)
}

func (s *reads) calls(w http.ResponseWriter, _ *http.Request) {
	answer(w, append([]Call{}, s.Calls()...))
}

func (s *reads) operations(w http.ResponseWriter, r *http.Request) {
	q, err := queryOf(r, time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	tell := func(w http.ResponseWriter, r *http.Request) { writeFound(w, s.Operations(r.Context(), q)) }
	if q.Wait == 0 {
		s.within(s.questions, tell)(w, r)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.patience + q.Wait + s.answer))
	s.within(s.polls, tell)(w, r)
}

func (s *reads) spans(w http.ResponseWriter, r *http.Request) {
	spans, err := s.Spans(r.PathValue("trace"))
	switch {
	case errors.Is(err, ErrNotRemembered):
		w.Header().Set(remembers, "no")
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(spans)
	}
}

func (s *reads) doctor(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.patience + examinedWithin + s.answer))
	document, err := s.Doctor(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(document)
}

func (s *reads) record(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query().Get("for")
	length, err := time.ParseDuration(asked)
	if err != nil || length <= 0 {
		http.Error(w, fmt.Sprintf("for=%q: want a duration, such as 30s", asked), http.StatusBadRequest)
		return
	}
	length = min(length, MaxRecord)
	ctx, cancel := context.WithTimeout(r.Context(), length)
	defer cancel()
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(length + s.answer))
	limited := &limitedWriter{ResponseWriter: w, left: maxRecording, over: cancel}
	if err := s.Record(ctx, limited, func() { _ = control.Flush() }); err != nil && ctx.Err() == nil {
		s.log.Warn("a recording over the read-only socket ended", "error", err)
	}
}

func writeFound(w http.ResponseWriter, f Found) {
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriter(w)
	lines := f.Lines
	f.Lines = nil
	head, err := json.Marshal(f.Collect())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	before, after, _ := bytes.Cut(head, []byte("]")) // the first field is the lines
	_, _ = out.Write(before)
	separator := ""
	if lines == nil {
		lines = func(func(Line) bool) {}
	}
	for l := range lines {
		line, err := json.Marshal(l)
		if err != nil {
			continue // JSON cannot express its time
		}
		if _, err := fmt.Fprintf(out, "%s%s", separator, line); err != nil {
			return // the client left or is too slow
		}
		separator = ","
	}
	_, _ = fmt.Fprintf(out, "]%s", after)
	_ = out.Flush()
}

// maxRecording bounds a recording in bytes: ten minutes of 30 pods at a time.
const maxRecording = 256 << 20

// limitedWriter calls over past the bound, so that the recording ends properly.
type limitedWriter struct {
	http.ResponseWriter
	left int
	over func()
}

func (w *limitedWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		w.over()
	}
	return w.ResponseWriter.Write(b)
}

func answer(w http.ResponseWriter, with any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(with) // fails only if the client left
}

func queryOf(r *http.Request, now time.Time) (q Query, err error) {
	v := r.URL.Query()
	q.Namespace, q.Pod = v.Get("namespace"), v.Get("pod")
	if s := v.Get("problems"); s != "" {
		if q.Problems, err = strconv.ParseBool(s); err != nil {
			return q, fmt.Errorf("problems=%q: want true or false", s)
		}
	}
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

const (
	// examinedFor is how long a document serves, examinedWithin bounds an examination.
	examinedFor    = 30 * time.Second
	examinedWithin = 20 * time.Second
)

// Examined runs one examination at a time, for all requests of 30 s, even if its client leaves.
func Examined(examine func(ctx context.Context) ([]byte, error)) func(ctx context.Context) ([]byte, error) {
	var last examination
	turn := make(chan struct{}, 1) // guards last
	return func(ctx context.Context) ([]byte, error) {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !last.at.IsZero() && time.Since(last.at) < examinedFor {
			defer func() { <-turn }()
			return last.document, last.err
		}
		done := make(chan examination, 1)
		go func() {
			defer func() { <-turn }()
			whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), examinedWithin)
			defer cancel()
			last.document, last.err = examine(whole)
			last.at = time.Now()
			done <- last
		}()
		select {
		case found := <-done:
			return found.document, found.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

type examination struct {
	document []byte
	err      error
	at       time.Time
}
