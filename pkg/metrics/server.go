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

// Bounds of the server. What asks here are a Prometheus and a kubelet; anybody else on
// the network must be nothing but a small nuisance. See places for how many there may be.
const (
	headerBytesMax = 8 << 10
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = scrapeTimeout + 5*time.Second
	// handshake is the time between two connections with TLS, at least: a handshake costs up to 1 ms of a CPU
	// (RSA), so strangers take up to half of one.
	handshake = 2 * time.Millisecond
)

// Check says how something is in a few words, for people, and whether that is good
// enough. It must not wait for anything.
type Check func() (report string, ok bool)

// Checks are what a kubelet asks: whether to restart cniscope, and whether it does what it is there for.
type Checks struct{ Alive, Ready Check }

// Where says where is served, and to whom.
type Where struct {
	// Listen is the address of all: "127.0.0.1:9471"; ":9471" is every address of the node.
	Listen string
	// Health is an address of the two checks alone, in plain text and for everybody; empty for none.
	Health string
	// WebConfig is the file that says who may connect to Listen; empty for everybody, in plain text.
	WebConfig string
}

// Server serves /metrics, /healthz and /readyz, and nothing else.
type Server struct{ all []*listening }

type listening struct {
	http     http.Server
	listener net.Listener
}

// Serve listens and serves until Close. Ports below 1024 need a capability that cniscope gives up once it
// observes: call Serve before that. The error says what to do about it.
func Serve(where Where, metrics http.Handler, checks Checks, log *slog.Logger) (*Server, error) {
	s := new(Server)
	if err := s.add("metrics.listen", where.Listen, where.WebConfig, checks.with(metrics), log); err != nil {
		return nil, err
	}
	if where.Health != "" {
		if err := s.add("metrics.health_listen", where.Health, "", checks.mux(), log); err != nil {
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

// with answers for all there is.
func (c Checks) with(metrics http.Handler) http.Handler {
	mux := c.mux()
	mux.Handle("GET /metrics", metrics)
	return mux
}

func (s *Server) add(option, address, webConfig string, h http.Handler, log *slog.Logger) error {
	l, err := listen(address, webConfig, h, log)
	if err != nil {
		return fmt.Errorf("%s: %w", option, err)
	}
	s.all = append(s.all, l)
	return nil
}

// listen returns a server that does not serve yet.
func listen(address, webConfig string, h http.Handler, log *slog.Logger) (*listening, error) {
	var secure *tls.Config
	if webConfig != "" {
		site, err := webconfig.New(webConfig, h, log)
		if err != nil {
			return nil, fmt.Errorf("the web configuration, metrics.web_config: %w", err)
		}
		h, secure = site, site.TLS()
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w; set another address, or stop who listens there (ss -ltnp names it)", err)
	}
	places := &places{TCPListener: listener.(*net.TCPListener)}
	l := &listening{listener: places, http: http.Server{
		ConnContext:       withPlace,
		Handler:           keeping(h),
		Protocols:         new(http.Protocols),
		MaxHeaderBytes:    headerBytesMax,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		// Whoever connects chooses what it would say.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	l.http.Protocols.SetHTTP1(true)
	// A connection has one answer. Who asks on and on without reading would get every turn that a processor has.
	l.http.SetKeepAlivesEnabled(false)
	if secure != nil {
		places.pace = handshake
		l.listener = tls.NewListener(places, secure)
	}
	return l, nil
}

func (s *listening) serve(log *slog.Logger) {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		log.Error("metrics are not served any more", "error", err)
	}
}

// Address is where it listens.
func (s *Server) Address() string { return s.all[0].Address() }

// Health is where it answers for health alone; empty for nowhere.
func (s *Server) Health() string {
	if len(s.all) < 2 {
		return ""
	}
	return s.all[1].Address()
}

// Address is where it listens.
func (s *listening) Address() string { return s.listener.Addr().String() }

// Close ends it; answers under way get until ctx is done.
func (s *Server) Close(ctx context.Context) (err error) {
	for _, l := range s.all {
		if late := l.http.Shutdown(ctx); late != nil {
			err = errors.Join(err, late, l.http.Close())
		}
		_ = l.listener.Close() // a server that has not begun does not know of it
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
	_, _ = io.WriteString(w, report+"\n") // whoever asked may be gone
}
