package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/lock"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// takeNode locks the node. If it is held, a pre-installed plugin waits for its predecessor, a service waits without a
// limit and rereads its options, and others fail with a *lock.HeldError.
func takeNode(l *life, options *config.Live) (release func(), err error) {
	dir := options.Options().State.Dir
	who := startedBy()
	release, err = lock.Take(dir, who)
	held, taken := errors.AsType[*lock.HeldError](err)
	switch {
	case !taken:
		return release, err
	case Preinstalled():
		ctx, cancel := context.WithTimeout(l.ctx, 2*ShutdownMax())
		defer cancel()
		return lock.Wait(ctx, dir, who, 50*time.Millisecond)
	case supervised():
		release, err = standBy(l.ctx, l.log, dir, who, held)
		if err != nil {
			return nil, err
		}
		if err := options.Configure(""); err != nil {
			release()
			return nil, err
		}
		return release, nil
	default:
		return nil, err
	}
}

func supervised() bool { return os.Getenv("NOTIFY_SOCKET") != "" && !Preinstalled() || isService() }

func startedBy() string {
	by := "started by hand"
	switch {
	case Preinstalled():
		by = "started by containerd as its NRI plugin"
	case os.Getenv("KUBERNETES_SERVICE_HOST") != "": // set in every container of a pod
		by = "in a pod"
	case isService():
		by = "a service of Windows"
	case supervised():
		by = "a service of systemd"
	}
	if program, err := os.Executable(); err == nil {
		by += ", " + program
	}
	return by
}

// standBy waits for the holder's exit, reported as ready so that systemd does not block.
func standBy(
	ctx context.Context, log *slog.Logger, dir, who string, held *lock.HeldError,
) (release func(), err error) {
	log.Warn("another cniscope observes this node; waiting for it to exit",
		"other", held.Holder, "lock", held.File, "remedy", "keep one of the two: stop the other one, or disable this service")
	signal.Ignore(syscall.SIGHUP) // the options are read later
	notify(log, daemon.SdNotifyReady+"\nSTATUS=waiting for another cniscope to exit: "+held.Holder)
	tellStarted(ctx)
	ctx, over := context.WithCancel(ctx)
	defer over()
	go feedWatchdog(ctx, log, func() (string, bool) { return "", true })
	if release, err = lock.Wait(ctx, dir, who, time.Second); err == nil {
		log.Info("the other cniscope exited, starting", "other", held.Holder)
		notify(log, "STATUS=")
	}
	return release, err
}

// leaveNode removes empty directories that kubelet made for hostPath mounts (DirectoryOrCreate), through process 1's
// root: a mount point cannot be removed from inside.
func leaveNode(dirs ...string) {
	own, err1 := procfs.OwnNamespace("mnt")
	first, err2 := procfs.Namespace(1, "mnt")
	if err1 != nil || err2 != nil || own == first {
		return
	}
	for _, dir := range dirs {
		here, err1 := os.Stat(dir)
		onNode := filepath.Join(procfs.Root(1), dir)
		there, err2 := os.Lstat(onNode)
		if err1 == nil && err2 == nil && os.SameFile(here, there) {
			_ = os.Remove(onNode) // fails if it has files
		}
	}
}
