package lock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheSecondIsToldWhoHoldsTheNode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	release, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Take(dir)
	var held *HeldError
	if !errors.As(err, &held) || !strings.HasPrefix(held.Holder, fmt.Sprintf("pid %d, since ", os.Getpid())) {
		t.Fatalf("the second lock: %v", err)
	}
	release()
	release, err = Take(dir)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	release()
}

func TestTheSecondWaitsForTheFirstToEnd(t *testing.T) {
	dir := t.TempDir()
	release, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := Wait(t.Context(), dir, time.Millisecond); !errors.As(err, &held) {
		t.Fatalf("its patience is over: %v", err)
	}
	time.AfterFunc(10*time.Millisecond, release)
	release, err = Wait(t.Context(), dir, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

func TestALockIsNotTakenThroughALink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(dir); err == nil {
		t.Fatal("the lock followed a symbolic link")
	}
}
