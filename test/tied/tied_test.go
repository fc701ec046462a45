//go:build linux

package tied

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// TestMain is also the process that starts a child, reports it, and is killed.
func TestMain(m *testing.M) {
	if os.Getenv("TIED") == "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("cat") // runs until its input ends
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	if err := Start(cmd); err != nil {
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}

func TestATiedProcessOutlivesAThread(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		runtime.LockOSThread()
		err = Start(cmd)
	}()
	<-gone
	if err != nil {
		t.Fatal(err)
	}
	for range 100 { // threads that end
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			runtime.LockOSThread()
		}()
		<-ended
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it did not end by itself: %v", err)
	}
}

func TestATiedProcessEndsWithItsParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), "TIED=1")
	in, err := parent.StdinPipe() // stays open: only the kernel ends the child
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "started" {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if lines.Scan() { // the output ends with its last writer
		t.Errorf("it says %q", lines.Text())
	}
	_ = parent.Wait()
}
