package metrics

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/cniscope/cniscope/pkg/webconfig"
)

const (
	headerBytesMax = 8 << 10
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = scrapeTimeout + 5*time.Second
)

// Check describes a state and whether it is good, without blocking.
type Check func() (report string, ok bool)

// Checks answer the kubelet's probes.
type Checks struct{ Alive, Ready Check }

// Where describes the addresses and their access.
type Where struct {
	Listen string
	// Health is an optional address for checks, without TLS and authentication.
	Health string
	// WebConfig is the file of Listen's access rules; empty allows all.
	WebConfig string
	// User returns who made a connection, if it was made in this network namespace. WebConfig needs it.
	User func(*net.TCPConn) (uid uint32, ok bool)
}

// Server serves /metrics, /healthz and /readyz.
type Server struct{ all []*listening }

type listening struct {
	http     http.Server
	listener net.Listener
}

// Serve listens until Close. Ports below 1024 need a capability dropped later.
func Serve(where Where, metrics http.Handler, checks Checks, log *slog.Logger) (*Server, error) {
	s := new(Server)
	if err := s.add("metrics.listen", where, checks.with(metrics), log); err != nil {
		return nil, err
	}
	if where.Health != "" {
		if err := s.add("metrics.health_listen", Where{Listen: where.Health}, checks.mux(), log); err != nil {
			return nil, errors.Join(err, s.Close(context.Background()))
		}
	}
	for _, l := range s.all {
		go l.serve(log)
	}
	return s, nil
}

func (c Checks) mux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", c.Alive)
	mux.Handle("GET /readyz", c.Ready)
	return mux
}

func (c Checks) with(metrics http.Handler) http.Handler {
	mux := c.mux()
	mux.Handle("GET /metrics", metrics)
	return mux
}

func (s *Server) add(option string, where Where, h http.Handler, log *slog.Logger) error {
	l, err := listen(where, h, log)
	if err != nil {
		return fmt.Errorf("%s: %w", option, err)
	}
	s.all = append(s.all, l)
	return nil
}

func listen(where Where, h http.Handler, log *slog.Logger) (*listening, error) {
	var secure *tls.Config
	if where.WebConfig != "" {
		source := func(r *http.Request) string { return where.source(placeOf(r).TCPConn) }
		site, err := webconfig.New(where.WebConfig, h, source, log)
		if err != nil {
			return nil, fmt.Errorf("the web configuration, metrics.web_config: %w", err)
		}
		h, secure = site, site.TLS()
	}
	socket, err := net.Listen("tcp", where.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w; set another address, or stop who listens there (ss -ltnp names it)", err)
	}
	places := &places{listener: socket.(*net.TCPListener)}
	l := &listening{listener: places, http: http.Server{
		ConnContext:       withPlace,
		Handler:           keeping(h),
		Protocols:         new(http.Protocols),
		MaxHeaderBytes:    headerBytesMax,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		// Any client can cause these messages.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	l.http.Protocols.SetHTTP1(true)
	// One answer per connection: clients that do not read could occupy all CPUs.
	l.http.SetKeepAlivesEnabled(false)
	if secure != nil {
		places.listener = newTurnstile(socket.(*net.TCPListener), where.source)
		l.listener = tls.NewListener(places, secure)
	}
	return l, nil
}

func (s *listening) serve(log *slog.Logger) {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		log.Error("metrics server stopped", "error", err)
	}
}

// Address returns the main address.
func (s *Server) Address() string { return s.all[0].Address() }

// Health returns the checks' address, or "".
func (s *Server) Health() string {
	if len(s.all) < 2 {
		return ""
	}
	return s.all[1].Address()
}

func (s *listening) Address() string { return s.listener.Addr().String() }

// Close waits for answers until ctx is done.
func (s *Server) Close(ctx context.Context) (err error) {
	for _, l := range s.all {
		if late := l.http.Shutdown(ctx); late != nil {
			err = errors.Join(err, late, l.http.Close())
		}
		_ = l.listener.Close() // an unstarted server does not close it
	}
	return err
}

func (c Check) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	report, ok := c()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, report+"\n")
}
