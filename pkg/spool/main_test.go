package spool

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

const childDir = "CNISCOPE_TEST_SPOOL"

// child appends and exports until it is killed, and prints each step.
func child(dir string) {
	s, err := Open(Options{Dir: dir, MaxBytes: 1 << 30, MaxAge: time.Hour})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	for i := 0; ; i++ {
		name := fmt.Sprintf("%d/%d/%s", os.Getpid(), i, strings.Repeat("x", i*37%20000))
		if _, err := s.Append(Operation{Start: noon, End: time.Now(), Data: []byte(name)}); err != nil {
			fmt.Println("error", err)
			return
		}
		fmt.Println("appended", name)
		if i%3 != 0 {
			continue
		}
		records, err := s.Peek(1, 1)
		if err != nil || len(records) != 1 {
			fmt.Println("error", len(records), err)
			return
		}
		fmt.Println("sent", string(records[0].Data))
		if err := s.Advance(records[0].Next); err != nil {
			fmt.Println("error", err)
			return
		}
		fmt.Println("exported", string(records[0].Data))
	}
}
