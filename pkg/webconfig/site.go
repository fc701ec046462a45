package webconfig

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

const (
	readEvery = time.Second
	// rest is the pause after a password check, in its durations: bcrypt gets half a CPU.
	rest = 1
	// remembered bounds the cache of valid credentials.
	remembered = 64
)

var errTLSChanged = errors.New("TLS was added or taken out: restart cniscope")

// Site restricts access as the file says.
type Site struct {
	path    string
	log     *slog.Logger
	toolkit http.Handler // calls pass if allowed
	handler http.Handler
	source  func(*http.Request) string
	tls     bool

	mu     sync.Mutex
	config *tls.Config
	err    error
	read   time.Time

	secret [32]byte
	known  map[[32]byte]bool
	turns  Turns
}

// New reads the file. Later changes apply; if TLS is added or removed, all requests are refused. Unknown credentials
// delay others of their source.
func New(path string, next http.Handler, source func(*http.Request) string, log *slog.Logger) (*Site, error) {
	toolkit, config, _, err := load(path)
	if err != nil {
		return nil, err
	}
	s := &Site{
		path: path, log: log, toolkit: toolkit, handler: next, source: source, tls: config != nil, config: config,
		read: time.Now(), known: map[[32]byte]bool{},
	}
	_, err = rand.Read(s.secret[:])
	return s, err
}

// TLS returns nil for plain text.
func (s *Site) TLS() *tls.Config {
	if !s.tls {
		return nil
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.now() },
	}
}

func (s *Site) now() (*tls.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.read) < readEvery {
		return s.config, s.err
	}
	_, config, _, err := load(s.path)
	if err == nil && (config != nil) != s.tls {
		err = errTLSChanged
	}
	if err != nil {
		s.log.Warn("metrics blocked by invalid web configuration", "error", err)
	}
	s.config, s.err, s.read = config, err, time.Now()
	return config, err
}

// ServeHTTP passes on allowed requests. Unknown credentials wait for their turn.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := s.now(); err != nil {
		http.Error(w, "the web configuration is wrong: see cniscope's log", http.StatusServiceUnavailable)
		return
	}
	if s.passes(w, r) {
		s.handler.ServeHTTP(w, r)
	}
}

func (s *Site) passes(w http.ResponseWriter, r *http.Request) bool {
	answer := &verdict{ResponseWriter: w}
	shown := r.Header.Get("Authorization")
	if shown == "" {
		s.toolkit.ServeHTTP(answer, r)
		return answer.passed
	}
	key := s.key(shown)
	if !s.right(key) {
		if !s.turns.Take(r.Context().Done(), s.source(r)) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many passwords are being checked", http.StatusTooManyRequests)
			return false
		}
		defer func(began time.Time) { time.AfterFunc(rest*time.Since(began), s.turns.Pass) }(time.Now())
	}
	s.toolkit.ServeHTTP(answer, r)
	s.learn(key, answer.passed)
	return answer.passed
}

func (s *Site) key(credentials string) (key [32]byte) {
	h := hmac.New(sha256.New, s.secret[:])
	h.Write([]byte(credentials))
	copy(key[:], h.Sum(nil))
	return key
}

func (s *Site) right(key [32]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[key]
}

func (s *Site) learn(key [32]byte, right bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !right:
		delete(s.known, key)
	case len(s.known) < remembered:
		s.known[key] = true
	}
}

type verdict struct {
	http.ResponseWriter
	passed bool
}

func pass(w http.ResponseWriter, _ *http.Request) { w.(*verdict).passed = true }
