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
	// maxMessage bounds a request in bytes, also decompressed: gRPC's default, so upstream would refuse a larger one.
	maxMessage = 4 << 20
	// maxReading bounds concurrent reads, and so the memory.
	maxReading = 4
	readTime   = 5 * time.Second

	// marker is the header that reveals loops.
	marker     = "x-cniscope-relayed"
	grpcPrefix = 5 // compression flag and length before each gRPC message
)

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

func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	return errUnread
}

// server serves both protocols: gRPC is HTTP/2 without TLS.
func (r *Relay) server() *http.Server {
	calls := grpc.NewServer(grpc.ForceServerCodecV2(otlp.Encoded{}), grpc.MaxRecvMsgSize(maxMessage))
	calls.RegisterService(&grpc.ServiceDesc{
		ServiceName: coltracepb.TraceService_ServiceDesc.ServiceName, HandlerType: (*any)(nil),
		// A stream, because gRPC hides too long messages from unary handlers.
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
		// Above the 5 s between an SDK's exports, so connections stay open.
		IdleTimeout:    5 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(r.options.Log.Handler(), slog.LevelDebug),
	}
}

func (r *Relay) slotted(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		select {
		case r.slots <- struct{}{}:
			defer func() { <-r.slots }()
			// One byte more, to detect excess.
			q.Body = http.MaxBytesReader(w, q.Body, grpcPrefix+maxMessage+1)
			h(w, q)
			return
		case <-time.After(readTime):
		case <-q.Context().Done():
		}
		r.count(&r.counts.Unread, 1)
		http.Error(w, "too many requests at a time", http.StatusServiceUnavailable)
	}
}

func (r *Relay) overHTTP(w http.ResponseWriter, q *http.Request) {
	err := r.receive(q.Header.Get(marker) != "", func() ([]byte, error) { return body(q) })
	if err != nil {
		http.Error(w, err.Error(), faultOf(err).status)
		return
	}
	w.Header().Set("Content-Type", otlp.Protobuf) // empty: all spans accepted
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

func (r *Relay) overGRPC(_ any, call grpc.ServerStream) error {
	sent, _ := metadata.FromIncomingContext(call.Context())
	err := r.receive(len(sent.Get(marker)) > 0, func() (message []byte, err error) {
		err = call.RecvMsg(&message)
		switch status.Code(err) {
		case codes.OK:
		case codes.ResourceExhausted:
			err = errTooLarge
		case codes.Internal:
			err = errMalformed
		}
		return message, err
	})
	if err != nil {
		return status.Error(faultOf(err).code, err.Error())
	}
	return call.SendMsg([][]byte(nil)) // empty: all spans accepted
}

// receive extracts sandbox spans and queues a request. A full queue is no error.
func (r *Relay) receive(relayed bool, read func() ([]byte, error)) error {
	if relayed {
		r.count(&r.counts.Looped, 1)
		return errLoop
	}
	message, err := read()
	if err == nil {
		err = r.learn(message)
	}
	switch {
	case err == nil:
		r.count(&r.counts.Received, 1)
		r.queue.Add(queue.Item{Data: message})
	case errors.Is(err, errTooLarge):
		r.count(&r.counts.TooLarge, 1)
	case faultOf(err) == errUnread:
		r.count(&r.counts.Unread, 1)
	default:
		r.count(&r.counts.Malformed, 1)
	}
	return err
}

func read(from io.Reader) ([]byte, error) {
	all, err := io.ReadAll(io.LimitReader(from, maxMessage+1))
	if err == nil && len(all) > maxMessage {
		err = errTooLarge
	}
	return all, err
}
