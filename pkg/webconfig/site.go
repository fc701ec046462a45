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
	// guessing bounds how many requests with a password that was not right before wait to be looked at: bcrypt takes
	// some 50 ms of a CPU for each.
	guessing = 8
	// rest is how many times as long as that took nobody else's is looked at: a fifth of a CPU at most.
	rest = 4
	// remembered bounds the credentials that were right, for which nobody waits.
	remembered = 64
)

var errTLSChanged = errors.New("TLS was added or taken out: restart cniscope")

// Site is who may read, as the file says at the moment.
type Site struct {
	path    string
	log     *slog.Logger
	handler http.Handler // the toolkit's, before ours
	tls     bool

	mu     sync.Mutex
	config *tls.Config
	err    error
	read   time.Time

	secret [32]byte
	known  map[[32]byte]bool // guarded by mu
	places chan struct{}
	turn   chan struct{}
}

// New reads the file. What it says later holds for later requests and connections; only TLS itself is neither
// added nor taken out while it runs: everybody is refused then. log is told what is wrong with it.
func New(path string, next http.Handler, log *slog.Logger) (*Site, error) {
	handler, config, _, err := loadFor(path, next)
	if err != nil {
		return nil, err
	}
	s := &Site{
		path: path, log: log, handler: handler, tls: config != nil, config: config, read: time.Now(),
		known: map[[32]byte]bool{}, places: make(chan struct{}, guessing), turn: make(chan struct{}, 1),
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

// ServeHTTP lets those through who may. Whoever shows credentials that were not right before waits for others who do,
// and is sent away where too many wait.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := s.now(); err != nil {
		http.Error(w, "the web configuration is wrong: see cniscope's log", http.StatusServiceUnavailable)
		return
	}
	shown := r.Header.Get("Authorization")
	if shown == "" {
		s.handler.ServeHTTP(w, r)
		return
	}
	key := s.key(shown)
	if !s.right(key) {
		if !s.wait(r) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many passwords are being checked", http.StatusTooManyRequests)
			return
		}
		defer func(began time.Time) { s.leave(time.Since(began)) }(time.Now())
	}
	answer := &status{ResponseWriter: w}
	s.handler.ServeHTTP(answer, r)
	s.learn(key, answer.code != http.StatusUnauthorized)
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

// wait waits for a turn; false where there is none to be had.
func (s *Site) wait(r *http.Request) bool {
	select {
	case s.places <- struct{}{}:
	default:
		return false
	}
	select {
	case s.turn <- struct{}{}:
		return true
	case <-r.Context().Done():
		<-s.places
		return false
	}
}

// leave lets the next one have its turn, after a rest.
func (s *Site) leave(took time.Duration) {
	<-s.places
	time.AfterFunc(rest*took, func() { <-s.turn })
}

// status notes how a request was answered.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}
