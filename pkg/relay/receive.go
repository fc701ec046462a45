package relay

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cniscope/cniscope/pkg/queue"
)

const (
	// maxMessage is the longest request in bytes, packed or unpacked: what servers of
	// gRPC take unless told otherwise, so a longer one would go no further.
	maxMessage = 4 << 20
	// maxReading is how many requests are read at one time: with maxMessage it bounds
	// what hostile senders can make the relay hold.
	maxReading = 4
	// readTime is how long a request may take to come, in all. It comes from this node.
	readTime = 5 * time.Second

	exportMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
	// marker is on every request that a relay sends on. A runtime's exporter has none, and an
	// endpoint does not care.
	marker     = "X-Cniscope-Relayed"
	grpcPrefix = 5 // a flag (packed) and the length, in front of each gRPC message
)

// request is what somebody exported: one gRPC message, the prefix included.
type request []byte

// requestOf puts the prefix in front of an encoded message.
func requestOf(message []byte, packed bool) request {
	r := make(request, grpcPrefix, grpcPrefix+len(message))
	if packed {
		r[0] = 1
	}
	binary.BigEndian.PutUint32(r[1:], uint32(len(message)))
	return append(r, message...)
}

func (r request) packed() bool { return r[0] != 0 }

// fault is what is wrong with a request, and how each protocol says so.
type fault struct {
	text   string
	status int
	code   codes.Code
}

func (f *fault) Error() string { return f.text }

var (
	errTooLarge = &fault{
		fmt.Sprintf("the request is longer than %d bytes", maxMessage),
		http.StatusRequestEntityTooLarge, codes.ResourceExhausted,
	}
	errEncoding = &fault{
		"the request is compressed in another way than gzip",
		http.StatusBadRequest, codes.InvalidArgument,
	}
	errNotProtobuf = &fault{
		"the request is no protobuf: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf or grpc",
		http.StatusUnsupportedMediaType, codes.InvalidArgument,
	}
	errBusy = &fault{"too many requests at a time", http.StatusServiceUnavailable, codes.Unavailable}
	errLoop = &fault{
		"the request has been through a relay of cniscope's: relay.upstream leads back to one",
		http.StatusLoopDetected, codes.FailedPrecondition,
	}
)

// faultOf says how err is answered: as a bad request unless it knows better.
func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	return &fault{err.Error(), http.StatusBadRequest, codes.InvalidArgument}
}

// server speaks both protocols on one port: gRPC is HTTP/2 without TLS.
func (r *Relay) server() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", r.overHTTP)
	mux.HandleFunc("POST "+exportMethod, r.overGRPC)
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: mux, Protocols: protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 2 * maxReading},
		ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: 2 * readTime,
		// Above the 5 s between two exports of an SDK, so that connections are kept.
		IdleTimeout:    5 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(r.options.Log.Handler(), slog.LevelDebug),
	}
}

// overHTTP takes OTLP/HTTP: the message is the body.
func (r *Relay) overHTTP(w http.ResponseWriter, q *http.Request) {
	const protobuf = "application/x-protobuf"
	kind, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	if kind != protobuf {
		r.counts.malformed.Add(1)
		http.Error(w, errNotProtobuf.text, errNotProtobuf.status)
		return
	}
	err := r.receive(q, maxMessage, func(body []byte) (request, error) {
		packed, err := isGzip(q.Header.Get("Content-Encoding"))
		return requestOf(body, packed), err
	})
	if err != nil {
		http.Error(w, err.Error(), faultOf(err).status)
		return
	}
	w.Header().Set("Content-Type", protobuf) // of an empty answer: all was taken
}

// overGRPC takes OTLP/gRPC: one call with one message, written as gRPC's "PROTOCOL-HTTP2"
// says. The library of gRPC would unpack the message, and it is to go on as it came.
func (r *Relay) overGRPC(w http.ResponseWriter, q *http.Request) {
	err := r.receive(q, grpcPrefix+maxMessage, func(frame []byte) (request, error) {
		if len(frame) < grpcPrefix || uint64(binary.BigEndian.Uint32(frame[1:])) != uint64(len(frame)-grpcPrefix) {
			return nil, errMalformed
		}
		if frame[0] == 0 {
			return frame, nil
		}
		packed, err := isGzip(q.Header.Get("Grpc-Encoding"))
		if !packed {
			frame[0] = 0
		}
		return frame, err
	})
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
	code, message := codes.OK, ""
	if err == nil {
		_, _ = w.Write(make([]byte, grpcPrefix)) // one empty message: all was taken
	} else {
		code, message = faultOf(err).code, err.Error()
	}
	w.Header().Set("Grpc-Status", strconv.Itoa(int(code)))
	w.Header().Set("Grpc-Message", message)
}

// receive reads a request, learns from it and sends it on its way. The error says what is
// wrong with it; that it could not be kept is none.
func (r *Relay) receive(q *http.Request, limit int, unwrap func([]byte) (request, error)) error {
	if q.Header.Get(marker) != "" {
		r.counts.looped.Add(1)
		return errLoop
	}
	release, err := r.slot(q.Context())
	if err != nil {
		return err
	}
	defer release()
	body, err := read(q.Body, limit)
	if err != nil && !errors.Is(err, errTooLarge) { // cut off, or too slow
		r.counts.unread.Add(1)
		return err
	}
	var export request
	if err == nil {
		export, err = unwrap(body)
	}
	if err == nil {
		err = r.take(export)
	}
	switch {
	case errors.Is(err, errTooLarge):
		r.counts.tooLarge.Add(1)
	case err != nil:
		r.counts.malformed.Add(1)
	}
	return err
}

func (r *Relay) take(q request) error {
	message, err := q.message()
	if err != nil {
		return err
	}
	if err := r.learn(message); err != nil {
		return err
	}
	r.counts.received.Add(1)
	r.queue.Add(queue.Item{Data: q})
	return nil
}

// message returns what was exported, unpacked.
func (r request) message() ([]byte, error) {
	if !r.packed() {
		return r[grpcPrefix:], nil
	}
	z, err := gzip.NewReader(bytes.NewReader(r[grpcPrefix:]))
	if err != nil {
		return nil, err
	}
	return read(z, maxMessage)
}

// slot waits, for a while, until few enough others are being read.
func (r *Relay) slot(ctx context.Context) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
		return func() { <-r.slots }, nil
	case <-ctx.Done():
		r.counts.unread.Add(1)
		return nil, errBusy
	}
}

func isGzip(encoding string) (bool, error) {
	switch encoding {
	case "", "identity":
		return false, nil
	case "gzip":
		return true, nil
	}
	return false, errEncoding
}

func read(from io.Reader, limit int) ([]byte, error) {
	all, err := io.ReadAll(io.LimitReader(from, int64(limit)+1))
	if err == nil && len(all) > limit {
		err = errTooLarge
	}
	return all, err
}
