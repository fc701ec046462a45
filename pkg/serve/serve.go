// Package serve stops HTTP servers with a context.
package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Until serves l until ctx ends and all connections are closed; answers in progress have the farewell. It returns an
// error of serving.
func Until(ctx context.Context, server *http.Server, l net.Listener, farewell time.Duration) error {
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		if server.Shutdown(late) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(l)
	if !stop() {
		<-closed
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
