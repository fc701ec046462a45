package nri

import (
	"net"
	"sync"
)

// conn is a connection that says when it was first used and when it is over. The
// stub cannot be asked for either while it starts, and it may start for ever.
type conn struct {
	net.Conn
	spoke     chan struct{} // closed at the first write
	gone      chan struct{} // closed when nothing can be read any more
	spokeOnce sync.Once
	goneOnce  sync.Once
}

func watch(c net.Conn) *conn {
	return &conn{Conn: c, spoke: make(chan struct{}), gone: make(chan struct{})}
}

func (c *conn) Write(b []byte) (int, error) {
	c.spokeOnce.Do(func() { close(c.spoke) })
	return c.Conn.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.over()
	}
	return n, err
}

func (c *conn) Close() error {
	c.over()
	return c.Conn.Close()
}

func (c *conn) over() { c.goneOnce.Do(func() { close(c.gone) }) }
