package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"github.com/cniscope/cniscope/pkg/private"
)

const asRoot = "run it as an administrator, from an elevated prompt"

// Address returns a run directory's pipe, with ":" for "\", which pipe names cannot contain.
func Address(dir string) string {
	name := strings.ToLower(filepath.ToSlash(filepath.Clean(dir)))
	return `\\.\pipe\cniscope.` + strings.ReplaceAll(strings.ReplaceAll(name, ":", ""), "/", ":")
}

// mayOpen allows administrators (BA) and the system (SY). Clients check the owner, BA.
const mayOpen = "O:BAG:SYD:P(A;;GA;;;BA)(A;;GA;;;SY)"

const buffers = 64 << 10

// Listen fails if the pipe exists: its creator would get administrators' requests.
func Listen(dir string) (net.Listener, error) {
	address := Address(dir)
	l, err := winio.ListenPipe(address, &winio.PipeConfig{
		SecurityDescriptor: mayOpen, InputBufferSize: buffers,
		OutputBufferSize: buffers,
	})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist) || errors.Is(err, windows.ERROR_PIPE_BUSY) {
		return nil, fmt.Errorf("control pipe: %w; another program has a pipe of this name: find it (handle.exe %s) and "+
			"stop it", err, address)
	}
	if err != nil {
		return nil, fmt.Errorf("control pipe: %w", err)
	}
	return l, nil
}

// Forget does nothing: pipes end with their process.
func Forget(string) {}

// ListenRead fails: read-only sockets are for Linux containers.
func ListenRead(string, int) (net.Listener, error) {
	return nil, errors.New("there is no read-only socket on Windows; ask over the control pipe")
}

// ForgetRead does nothing.
func ForgetRead(string) {}

// connect accepts only pipes of administrators or the system. go-winio connects anonymously.
func connect(ctx context.Context, address string) (net.Conn, error) {
	c, err := winio.DialPipeContext(ctx, address)
	if err != nil {
		return nil, err
	}
	if err := owned(c); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return c, nil
}

func owned(c net.Conn) error {
	pipe, ok := c.(interface{ Fd() uintptr })
	if !ok {
		return fmt.Errorf("whose it is cannot be asked of a %T", c)
	}
	if err := private.Owned(windows.Handle(pipe.Fd())); err != nil {
		return fmt.Errorf("%w: it is not cniscope's, and was asked nothing", err)
	}
	return nil
}
