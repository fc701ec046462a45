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
	// readEvery is how often the files are read again, at most: a handshake costs no reading then.
	readEvery = time.Second
	// rest is how many times as long as the latest check no password is checked: bcrypt has half of a CPU at most.
	rest = 1
	// remembered bounds the credentials that were right, for which nobody waits.
	remembered = 64
)

var errTLSChanged = errors.New("TLS was added or taken out: restart cniscope")

// Site is who may read, as the file says at the moment.
type Site struct {
	path    string
	log     *slog.Logger
	toolkit http.Handler // says whether a request may pass: it calls pass then
	handler http.Handler
	tls     bool

	mu     sync.Mutex
	config *tls.Config
	err    error
	read   time.Time

	secret [32]byte
	known  map[[32]byte]bool // guarded by mu
	turns  turns             // of those whose credentials are not known
}

// New reads the file. What it says later holds for later requests and connections; only TLS itself is neither
// added nor taken out while it runs: everybody is refused then. log is told what is wrong with it.
func New(path string, next http.Handler, log *slog.Logger) (*Site, error) {
	toolkit, config, _, err := load(path)
	if err != nil {
		return nil, err
	}
	s := &Site{
		path: path, log: log, toolkit: toolkit, handler: next, tls: config != nil, config: config, read: time.Now(),
		known: map[[32]byte]bool{},
	}
	_, err = rand.Read(s.secret[:])
	return s, err
}

// TLS is how connections are taken, nil in plain text.
func (s *Site) TLS() *tls.Config {
	if !s.tls {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.now() }}
}

// now is the configuration as the files have it, or had it less than readEvery ago.
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
		s.log.Warn("nobody may read the metrics until their web configuration is right again", "error", err)
	}
	s.config, s.err, s.read = config, err, time.Now()
	return config, err
}

// ServeHTTP lets those through who may. Credentials that were not right before wait for their turn to be checked.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := s.now(); err != nil {
		http.Error(w, "the web configuration is wrong: see cniscope's log", http.StatusServiceUnavailable)
		return
	}
	if s.passes(w, r) {
		s.handler.ServeHTTP(w, r)
	}
}

// passes reports whether a request may pass, and answers it if not.
func (s *Site) passes(w http.ResponseWriter, r *http.Request) bool {
	answer := &verdict{ResponseWriter: w}
	shown := r.Header.Get("Authorization")
	if shown == "" {
		s.toolkit.ServeHTTP(answer, r)
		return answer.passed
	}
	key := s.key(shown)
	if !s.right(key) {
		if !s.turns.take(r) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many passwords are being checked", http.StatusTooManyRequests)
			return false
		}
		defer func(began time.Time) { time.AfterFunc(rest*time.Since(began), s.turns.pass) }(time.Now())
	}
	s.toolkit.ServeHTTP(answer, r)
	s.learn(key, answer.passed)
	return answer.passed
}

// key stands for credentials: what is kept of them tells nobody anything.
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

// verdict notes that a request passed the toolkit.
type verdict struct {
	http.ResponseWriter
	passed bool
}

// pass is what is behind the toolkit.
func pass(w http.ResponseWriter, _ *http.Request) { w.(*verdict).passed = true }
