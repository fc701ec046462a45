//go:build linux

package scenarios

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	apiServer = "127.0.6.43:6443"
	// ciliumSocket is the socket of the fake agent that answers 429.
	ciliumSocket = "/run/cniscope-scenario/cilium.sock"
)

// lease is an IPAM plugin that needs the API server, like whereabouts.
func lease() int {
	if os.Getenv("CNI_COMMAND") != "ADD" {
		return 0
	}
	for range 2 { // the pool, then the lease
		c, err := net.Dial("tcp", apiServer)
		if err != nil {
			fmt.Printf(`{"cniVersion":"1.0.0","code":7,"msg":%q}`, err.Error())
			return 1
		}
		_, _ = c.Read(make([]byte, 1)) // until it is closed
		c.Close()
	}
	fmt.Print(`{"cniVersion":"1.0.0","ips":[{"address":"10.199.0.7/24"}]}`)
	return 0
}

// overUnix is a client of ciliumSocket.
func overUnix(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", ciliumSocket)
	}}}
}

func put(timeout time.Duration) (*http.Response, error) {
	request, err := http.NewRequest(http.MethodPut, "http://localhost/v1/endpoint/1", nil)
	if err != nil {
		return nil, err
	}
	return overUnix(timeout).Do(request)
}

// putEndpoint behaves like Cilium's plugin.
func putEndpoint() error {
	answer, err := put(0)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusTooManyRequests {
		return fmt.Errorf("unable to create endpoint: [PUT /endpoint/{id}][429] putEndpointIdTooManyRequests")
	}
	return nil
}

// share computes on one CPU with the plugins' priority.
func share(cpu int, work time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A changed thread would exit, and with it its children (prctl(2), PR_SET_PDEATHSIG).
	var set, before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }()
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 minus the priority
	if err != nil {
		return err
	}
	defer func() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, 20-raw) }()
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, priority); err != nil {
		return err
	}
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		return err
	}
	for until := now.Nano() + int64(work); now.Nano() < until; {
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
			return err
		}
	}
	return nil
}
