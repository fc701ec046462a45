package nri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/clock"
)

// serve keeps the plugin connected until ctx ends, or a pre-installed plugin's runtime exits.
func (p *Plugin) serve(ctx context.Context) error {
	defer p.attempt()
	inherited := p.inherit()
	if inherited != nil {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() {
			if processEnded(ctx, anchor.Peer(inherited)) {
				cancel(ErrRuntimeGone)
			}
		}()
	}
	for failures := 0; ; failures++ {
		began := time.Now()
		c, err := inherited, error(nil)
		if inherited = nil; c == nil {
			c, err = dial(ctx, p.options.Socket)
		}
		limit := p.pace.missing
		if err == nil {
			limit = p.pace.refused
			err = p.session(ctx, watch(c))
		}
		if ctx.Err() != nil {
			return ending(ctx)
		}
		p.attempt()
		p.trouble(err)
		if time.Since(began) >= p.pace.steady {
			failures = 0
		}
		if !clock.Wait(ctx, backoff(p.pace.first, limit, failures, rand.Float64())) {
			return ending(ctx)
		}
	}
}

func ending(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), ErrRuntimeGone) {
		return ErrRuntimeGone
	}
	return nil
}

func (p *Plugin) inherit() net.Conn {
	if !p.preinstalled {
		return nil
	}
	c, err := fromEnvironment(os.Getenv(api.PluginSocketEnvVar))
	if err != nil {
		p.options.Log.Error("NRI: started as a pre-installed plugin, but without a usable socket; trying the external one",
			"error", err, "socket", p.options.Socket)
		return nil
	}
	return c
}

func fromEnvironment(value string) (net.Conn, error) {
	fd, err := strconv.ParseUint(value, 10, 16)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("%s=%q is not the number of a socket", api.PluginSocketEnvVar, clean(value))
	}
	f := os.NewFile(uintptr(fd), "NRI socket")
	if f == nil {
		return nil, fmt.Errorf("%s=%d is not open", api.PluginSocketEnvVar, fd)
	}
	defer f.Close() // FileConn duplicates it
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("%s=%d: %w", api.PluginSocketEnvVar, fd, err)
	}
	return c, nil
}

func dial(ctx context.Context, socket string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return new(net.Dialer).DialContext(ctx, "unix", socket)
}

func (p *Plugin) trouble(err error) {
	reason := remedy(err, p.options.Socket)
	p.options.Log.Debug("NRI: not connected", "error", said(err))
	p.queue.say(&reason)
}

func remedy(err error, socket string) string {
	const without = "pods are traced without labels, addresses and the mark \"running\""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("there is no NRI socket %s: %s; NRI may be disabled in containerd (it is by default in 1.7): "+
			"see configs/containerd/cniscope-nri.toml", socket, without)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("no process listens on the NRI socket %s: %s until containerd is up again", socket, without)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("the NRI socket %s may not be opened: %s; run cniscope as root", socket, without)
	case errors.Is(err, errCut):
		return fmt.Sprintf("containerd closed the NRI connection: %s until it is back", without)
	}
	return fmt.Sprintf("NRI at %s: %s: %s; containerd's log says more", socket, said(err), without)
}

// backoff is random, so that not all plugins reconnect at once.
func backoff(first, limit time.Duration, failures int, random float64) time.Duration {
	delay := limit
	if failures < 16 { // avoids an overflow
		delay = min(limit, first<<failures)
	}
	return time.Duration(float64(delay) * (0.5 + random/2))
}
