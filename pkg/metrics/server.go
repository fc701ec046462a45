package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Bounds of the server. What asks here are a Prometheus and a kubelet; anybody else on
// the network must be nothing but a small nuisance. See places for how many there may be.
const (
	headerBytesMax = 8 << 10
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = scrapeTimeout + 5*time.Second
	idleTimeout    = 2 * time.Minute // longer than any usual interval between scrapes
)

// Check says how something is in a few words, for people, and whether that is good
// enough. It must not wait for anything.
type Check func() (report string, ok bool)

// Checks are what a kubelet asks: whether to restart cniscope, and whether it does what it is there for.
type Checks struct{ Alive, Ready Check }

// Server serves /metrics, /healthz and /readyz, and nothing else.
type Server struct {
	http     http.Server
	listener net.Listener
}

// Serve listens on address ("127.0.0.1:9471"; ":9471" is every address of the node) and
// serves until Close. Ports below 1024 need a capability that cniscope gives up once it
// observes: call Serve before that. The error says what to do about it.
func Serve(address string, metrics http.Handler, checks Checks, log *slog.Logger) (*Server, error) {
	s, err := listen(address, metrics, checks, log)
	if err != nil {
		return nil, err
	}
	go s.serve(log)
	return s, nil
}

// listen returns a server that does not serve yet.
func listen(address string, metrics http.Handler, checks Checks, log *slog.Logger) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w; set another metrics.listen, or find out who listens there (ss -ltnp)", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.Handle("GET /healthz", keeping(checks.Alive))
	mux.Handle("GET /readyz", keeping(checks.Ready))
	places := newPlaces(listener.(*net.TCPListener))
	return &Server{listener: places, http: http.Server{
		ConnContext:       withPlace,
		Handler:           places.brief(mux),
		MaxHeaderBytes:    headerBytesMax,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		// Whoever connects chooses what it would say.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}, nil
}

func (s *Server) serve(log *slog.Logger) {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		log.Error("metrics are not served any more", "error", err)
	}
}

// Address is where it listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close ends it; answers under way get until ctx is done.
func (s *Server) Close(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(err, s.http.Close())
	}
	return nil
}

func (c Check) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	report, ok := c()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, report+"\n") // whoever asked may be gone
}
