package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"time"
)

type server struct{ over chan struct{} }

//go:noinline
func (s *server) sleeps() { <-s.over }

//go:noinline
func (s *server) naps() {
	for {
		select {
		case <-s.over:
			return
		default:
			time.Sleep(20 * time.Millisecond)
		}
	}
}

//go:noinline
func (s *server) computes() {
	sum := sha256.Sum256(nil)
	for {
		select {
		case <-s.over:
			return
		default:
			sum = sha256.Sum256(sum[:])
		}
	}
}

func (s *server) handle(what string) {
	switch what {
	case "sleeps\n":
		s.sleeps()
	case "computes\n":
		s.computes()
	default:
		func() { s.naps() }()
	}
}

func main() {
	for range 20 {
		go (&server{}).handle("sleeps\n")
	}
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			fmt.Fprint(os.Stderr)
		}
	}()
	in := bufio.NewReader(os.Stdin)
	var s *server
	for {
		what, err := in.ReadString('\n')
		switch {
		case err != nil:
			return
		case what == "\n":
			close(s.over)
		default:
			s = &server{over: make(chan struct{})}
			go s.handle(what)
		}
		fmt.Println("so")
	}
}
