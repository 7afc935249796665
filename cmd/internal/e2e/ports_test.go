package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// had are the addresses that tests of this process have had. None has one that
// another test had: series are counted by upstream for as long as the process
// lives, and the system gives the same ports again.
var had sync.Map

// fresh calls f until it gives an address that no test has had.
func fresh(t *testing.T, f func() (address string, drop func(), err error)) (drop func()) {
	t.Helper()
	for range 100 {
		address, drop, err := f()
		if err != nil {
			t.Fatal(err)
		}
		if _, again := had.LoadOrStore(address, true); !again {
			return drop
		}
		drop()
	}
	t.Fatal("the system gives a hundred addresses that were had before")
	return nil
}

// listen listens on a loopback port.
func listen(t *testing.T) (l net.Listener) {
	t.Helper()
	fresh(t, func() (string, func(), error) {
		var err error
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return "", nil, err
		}
		return l.Addr().String(), func() { l.Close() }, nil
	})
	return l
}

// listenInARow listens on n loopback ports, each one above the one before.
func listenInARow(t *testing.T, n int) []net.Listener {
	t.Helper()
	for range 100 {
		row := []net.Listener{listen(t)}
		low := row[0].Addr().(*net.TCPAddr).Port
		for len(row) < n {
			address := fmt.Sprint("127.0.0.1:", low+len(row))
			if _, again := had.LoadOrStore(address, true); again {
				break
			}
			l, err := net.Listen("tcp", address) // not listenAt: who shares ports takes those of others
			if err != nil {
				break
			}
			row = append(row, l)
		}
		if len(row) == n {
			return row
		}
		for _, l := range row {
			l.Close()
		}
	}
	t.Fatalf("there are no %d free ports in a row", n)
	return nil
}

// serve serves h on a loopback port; the server is the caller's to close.
func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := &httptest.Server{Listener: listen(t), Config: &http.Server{Handler: h}}
	s.Start()
	return s
}

// deadAddress is one that refuses connections until the test ends: nobody gets
// it but who listens by listenAt, or Caddy, as both share ports.
func deadAddress(t *testing.T) (address string) {
	t.Helper()
	drop := fresh(t, func() (string, func(), error) {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err != nil {
			return "", nil, fmt.Errorf("making a socket: %w", err)
		}
		syscall.CloseOnExec(fd)
		drop := func() { _ = syscall.Close(fd) }
		if err := sharePort(uintptr(fd)); err != nil {
			drop()
			return "", nil, err
		}
		if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			drop()
			return "", nil, fmt.Errorf("binding a socket: %w", err)
		}
		bound, err := syscall.Getsockname(fd)
		if err != nil {
			drop()
			return "", nil, fmt.Errorf("asking for a socket's address: %w", err)
		}
		address = fmt.Sprint("127.0.0.1:", bound.(*syscall.SockaddrInet4).Port)
		return address, drop, nil
	})
	t.Cleanup(drop)
	return address
}

func sharePort(fd uintptr) error {
	if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return fmt.Errorf("sharing a port: %w", err)
	}
	return nil
}

// listenAt listens at an address, which may be one of deadAddress or that of a
// socket file.
func listenAt(address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix/"); ok {
		return net.Listen("unix", path)
	}
	c := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) (err error) {
		if e := conn.Control(func(fd uintptr) { err = sharePort(fd) }); e != nil {
			return e
		}
		return err
	}}
	return c.Listen(context.Background(), "tcp", address)
}

// The bench's own promise: who is dead refuses, and is alive when somebody
// listens there.
func TestADeadAddressRefusesUntilSomebodyListens(t *testing.T) {
	address := deadAddress(t)
	for range 2 {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			t.Fatal("a dead address takes connections")
		}
	}
	if l, err := net.Listen("tcp", address); err == nil {
		l.Close()
		t.Error("a dead address is anybody's")
	}
	serveAt(t, address, http.NotFoundHandler())
	res, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}
