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

// asRoot is what to do for who may not ask.
const asRoot = "be an administrator: run it from an elevated prompt"

// Address is where the cniscope whose run folder is dir answers administrators: a pipe with the folder in its
// name, in which ":" stands for what separates folders, as no name of a pipe has "\".
func Address(dir string) string {
	name := strings.ToLower(filepath.ToSlash(filepath.Clean(dir)))
	return `\\.\pipe\cniscope.` + strings.ReplaceAll(strings.ReplaceAll(name, ":", ""), "/", ":")
}

// mayOpen is who may open the pipe, in the language of security descriptors: administrators (BA) and the system
// (SY), and nobody by inheritance (P). It belongs to administrators, by which a client knows it (owned).
const mayOpen = "O:BAG:SYD:P(A;;GA;;;BA)(A;;GA;;;SY)"

// buffers of the pipe, in bytes each way: what one answer mostly has.
const buffers = 64 << 10

// Listen makes the pipe. It fails where a pipe of this name is there already, whoever made it: its maker
// would be told what administrators ask, and answer it.
func Listen(dir string) (net.Listener, error) {
	address := Address(dir)
	l, err := winio.ListenPipe(address, &winio.PipeConfig{SecurityDescriptor: mayOpen, InputBufferSize: buffers, OutputBufferSize: buffers})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist) || errors.Is(err, windows.ERROR_PIPE_BUSY) {
		return nil, fmt.Errorf("control pipe: %w; another program has a pipe of this name: find it (handle.exe %s) and stop it", err, address)
	}
	if err != nil {
		return nil, fmt.Errorf("control pipe: %w", err)
	}
	return l, nil
}

// Forget does nothing: a pipe goes with the process that made it.
func Forget(string) {}

// ListenRead fails: the read-only socket is for Kubernetes' containers beside cniscope's, and these are Linux'.
func ListenRead(string, int) (net.Listener, error) {
	return nil, errors.New("there is no read-only socket on Windows; ask over the control pipe")
}

// ForgetRead does nothing, as Forget.
func ForgetRead(string) {}

// connect connects to a pipe, and to none that another than an administrator or the system has made. Its maker
// learns nothing of who asks (go-winio connects as anonymous).
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

// owned reports as an error that a pipe is not of administrators or the system.
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
