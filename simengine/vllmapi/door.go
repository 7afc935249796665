package vllmapi

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// reopenAfter is how long a port that couldn't be opened again is left alone.
const reopenAfter = 100 * time.Millisecond

// Listen opens the server's port, so that faults can shut it. A server has one.
func (fs *Faults) Listen(network, address string) (net.Listener, error) {
	inner, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	d := &door{address: inner.Addr(), inner: inner, conns: make(map[net.Conn]struct{}), turned: make(chan struct{})}
	fs.door.Store(d)
	return d, nil
}

// door is a listener that can be shut for a while: then its port is closed, as
// are the connections that came through it.
type door struct {
	address net.Addr

	mu     sync.Mutex
	inner  net.Listener // nil while shut
	conns  map[net.Conn]struct{}
	turned chan struct{} // closed when inner changes
	closed bool
}

// Accept implements net.Listener. While the door is shut it waits.
func (d *door) Accept() (net.Conn, error) {
	for {
		d.mu.Lock()
		inner, turned, closed := d.inner, d.turned, d.closed
		d.mu.Unlock()
		if closed {
			return nil, net.ErrClosed
		}
		if inner == nil {
			<-turned
			continue
		}
		conn, err := inner.Accept()
		if through, ok := d.through(inner, conn, err); ok {
			return through, err
		}
	}
}

// through lets a connection in, unless the door was shut or closed meanwhile.
func (d *door) through(inner net.Listener, conn net.Conn, err error) (net.Conn, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	same := d.inner == inner && !d.closed
	switch {
	case err != nil:
		return nil, same
	case !same:
		_ = conn.Close()
		return nil, false
	}
	c := &guest{conn, d}
	d.conns[c] = struct{}{}
	return c, true
}

// Close implements net.Listener. Connections stay: the http.Server ends them.
func (d *door) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	close(d.turned)
	if d.inner == nil {
		return nil
	}
	return d.inner.Close()
}

// Addr implements net.Listener.
func (d *door) Addr() net.Addr { return d.address }

// shut closes the port and all connections.
func (d *door) shut() {
	d.mu.Lock()
	if d.inner == nil || d.closed {
		d.mu.Unlock()
		return
	}
	_ = d.inner.Close()
	d.turn(nil)
	conns := d.conns
	d.conns = make(map[net.Conn]struct{})
	d.mu.Unlock()
	for c := range conns {
		_ = c.Close()
	}
}

// open opens the port again.
func (d *door) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inner != nil || d.closed {
		return nil
	}
	inner, err := net.Listen(d.address.Network(), d.address.String())
	if err != nil {
		return fmt.Errorf("listening again: %w", err)
	}
	d.turn(inner)
	return nil
}

func (d *door) turn(inner net.Listener) {
	d.inner = inner
	close(d.turned)
	d.turned = make(chan struct{})
}

// guest is a connection that came through a door.
type guest struct {
	net.Conn
	door *door
}

// Close implements net.Conn.
func (g *guest) Close() error {
	g.door.mu.Lock()
	delete(g.door.conns, g)
	g.door.mu.Unlock()
	return g.Conn.Close()
}
