package relay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/pkg/otlp"
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

	// marker is on every request that a relay sends on. A runtime's exporter has none, and an
	// endpoint does not care.
	marker     = "x-cniscope-relayed"
	grpcPrefix = 5 // a flag (packed) and the length, in front of each gRPC message
)

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
	errMalformed = &fault{"the request is not one of OTLP", http.StatusBadRequest, codes.InvalidArgument}
	errUnread    = &fault{"", http.StatusBadRequest, codes.Unavailable}
	errLoop      = &fault{
		"the request has been through a relay of cniscope's: relay.upstream leads back to one",
		http.StatusLoopDetected, codes.FailedPrecondition,
	}
)

// faultOf says how err is answered: as what could not be read unless it knows better.
func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	return errUnread
}

// server speaks both protocols on one port: gRPC is HTTP/2 without TLS.
func (r *Relay) server() *http.Server {
	calls := grpc.NewServer(grpc.ForceServerCodecV2(otlp.Encoded{}), grpc.MaxRecvMsgSize(maxMessage))
	calls.RegisterService(&grpc.ServiceDesc{
		ServiceName: coltracepb.TraceService_ServiceDesc.ServiceName, HandlerType: (*any)(nil),
		// As a stream of one message: of a call, gRPC alone would see a message that is too long.
		Streams: []grpc.StreamDesc{{StreamName: "Export", ClientStreams: true, ServerStreams: true, Handler: r.overGRPC}},
	}, r)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", r.slotted(r.overHTTP))
	mux.HandleFunc("POST "+coltracepb.TraceService_Export_FullMethodName, r.slotted(calls.ServeHTTP))
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

// slotted waits, for a while, until few enough others are being read. gRPC knows what a 503 means, too.
func (r *Relay) slotted(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		late := time.NewTimer(readTime)
		defer late.Stop()
		select {
		case r.slots <- struct{}{}:
			defer func() { <-r.slots }()
			// One byte more than may be read, so that who reads sees that it is too long.
			q.Body = http.MaxBytesReader(w, q.Body, grpcPrefix+maxMessage+1)
			h(w, q)
			return
		case <-late.C:
		case <-q.Context().Done():
		}
		r.counts.unread.Add(1)
		http.Error(w, "too many requests at a time", http.StatusServiceUnavailable)
	}
}

// overHTTP takes OTLP/HTTP: the message is the body.
func (r *Relay) overHTTP(w http.ResponseWriter, q *http.Request) {
	err := r.receive(q.Header.Get(marker) != "", func() ([]byte, error) { return body(q) })
	if err != nil {
		http.Error(w, err.Error(), faultOf(err).status)
		return
	}
	w.Header().Set("Content-Type", otlp.Protobuf) // of an empty answer: all was taken
}

func body(q *http.Request) ([]byte, error) {
	if kind, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type")); kind != otlp.Protobuf {
		return nil, errNotProtobuf
	}
	sent, err := read(q.Body)
	if err != nil {
		return nil, err
	}
	switch q.Header.Get("Content-Encoding") {
	case "", "identity":
		return sent, nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(sent))
		if err != nil {
			return nil, errMalformed
		}
		message, err := read(z)
		if err != nil && !errors.Is(err, errTooLarge) {
			err = errMalformed
		}
		return message, err
	}
	return nil, errEncoding
}

// overGRPC takes OTLP/gRPC: one call with one message.
func (r *Relay) overGRPC(_ any, call grpc.ServerStream) error {
	sent, _ := metadata.FromIncomingContext(call.Context())
	err := r.receive(len(sent.Get(marker)) > 0, func() (message []byte, err error) {
		err = call.RecvMsg(&message)
		switch status.Code(err) {
		case codes.OK:
		case codes.ResourceExhausted:
			err = errTooLarge
		case codes.Unimplemented: // a compression
			err = errEncoding
		case codes.Internal:
			err = errMalformed
		}
		return message, err
	})
	if err != nil {
		return status.Error(faultOf(err).code, err.Error())
	}
	return call.SendMsg([][]byte(nil)) // an empty message: all was taken
}

// receive reads a request, learns from it and sends it on its way. The error says what is
// wrong with it; that it could not be kept is none.
func (r *Relay) receive(relayed bool, read func() ([]byte, error)) error {
	if relayed {
		r.counts.looped.Add(1)
		return errLoop
	}
	message, err := read()
	if err == nil {
		err = r.take(message)
	}
	switch {
	case err == nil:
	case errors.Is(err, errTooLarge):
		r.counts.tooLarge.Add(1)
	case faultOf(err) == errUnread: // cut off, or too slow
		r.counts.unread.Add(1)
	default:
		r.counts.malformed.Add(1)
	}
	return err
}

func (r *Relay) take(message []byte) error {
	if err := r.learn(message); err != nil {
		return err
	}
	r.counts.received.Add(1)
	r.queue.Add(queue.Item{Data: message})
	return nil
}

func read(from io.Reader) ([]byte, error) {
	all, err := io.ReadAll(io.LimitReader(from, maxMessage+1))
	if err == nil && len(all) > maxMessage {
		err = errTooLarge
	}
	return all, err
}
