//go:build linux

package standin

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// message is a JSON-RPC request, answer, or notification (RFC 7047, 4).
type message struct {
	ID     uint64 `json:"id,omitempty"`
	Method string `json:"method,omitempty"`
	Params *row   `json:"params,omitempty"`
	Result *row   `json:"result,omitempty"`
}

type row struct {
	Op        string     `json:"op,omitempty"` // insert, wait, set, delete
	Port      string     `json:"port,omitempty"`
	Number    int        `json:"ofport,omitempty"`
	Container string     `json:"container,omitempty"`
	Inject    *Injection `json:"inject,omitempty"`
}

type stream struct {
	conn    net.Conn
	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan *row
}

func dial(address string) (*stream, error) {
	network, at, _ := strings.Cut(address, " ")
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial(network, at)
		if err == nil {
			return newStream(c), nil
		}
		if time.Now().After(until) {
			return nil, err
		}
	}
}

func listen(address string, serve func(*stream)) error {
	network, at, _ := strings.Cut(address, " ")
	if network == "unix" {
		_ = os.Remove(at) // left by the previous one
	}
	l, err := net.Listen(network, at)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(newStream(c))
		}
	}()
	return nil
}

func newStream(c net.Conn) *stream { return &stream{conn: c, waiting: map[uint64]chan *row{}} }

func (s *stream) read(take func(message)) error {
	lines := json.NewDecoder(s.conn)
	for {
		var m message
		if err := lines.Decode(&m); err != nil {
			return errors.Join(err, s.conn.Close())
		}
		if m.Method != "" {
			take(m)
			continue
		}
		s.mu.Lock()
		answer := s.waiting[m.ID]
		delete(s.waiting, m.ID)
		s.mu.Unlock()
		if answer != nil {
			answer <- m.Result
		}
	}
}

func (s *stream) send(m message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = s.conn.Write(append(text, '\n')) // shared streams have their own lock
	return err
}

func (s *stream) begin(method string, r row) (<-chan *row, error) {
	answer := make(chan *row, 1)
	s.mu.Lock()
	s.next++
	id := s.next
	s.waiting[id] = answer
	s.mu.Unlock()
	return answer, s.send(message{ID: id, Method: method, Params: &r})
}

// ask sends a request and waits for the answer.
func (s *stream) ask(method string, r row) (*row, error) {
	answer, err := s.begin(method, r)
	if err != nil {
		return nil, err
	}
	return <-answer, nil
}
