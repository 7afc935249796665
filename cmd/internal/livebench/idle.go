package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// idleMemory is the resident memory, in MiB, of a server with streams that have
// begun, and then stand still because the engine was put to sleep.
func idleMemory() (float64, error) {
	server, err := start("idle", "")
	if err != nil {
		return 0, err
	}
	defer server.stop()
	request := chatRequest(3500, true)
	conns := make([]net.Conn, idleStreams)
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}()
	var group sync.WaitGroup
	errs := make(chan error, connections)
	for worker := range connections {
		group.Go(func() {
			for i := worker; i < idleStreams; i += connections {
				c, err := open(server.addr, request)
				if err != nil {
					errs <- err
					return
				}
				conns[i] = c
			}
			for i := worker; i < idleStreams; i += connections {
				if err := begun(conns[i]); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
	}
	if _, err := http.Post("http://"+server.addr+"/sleep?level=0&mode=keep", "", nil); err != nil {
		return 0, err
	}
	time.Sleep(2 * time.Second) // the step ends, and what was freed is seen
	return resident(server.cmd.Process.Pid)
}

// open begins a stream.
func open(addr string, request []byte) (net.Conn, error) {
	c, err := net.Dial("tcp", addr)
	if err == nil {
		_, err = c.Write(request)
	}
	return c, err
}

// begun waits for a stream's first chunk.
func begun(c net.Conn) error {
	buf, have := make([]byte, 4096), 0
	for !bytes.Contains(buf[:have], []byte(`"assistant"`)) {
		n, err := c.Read(buf[have:])
		if err != nil {
			return fmt.Errorf("after %q: %w", buf[:have], err)
		}
		have += n
	}
	return nil
}

// resident reads a process's resident memory, in MiB, from /proc.
func resident(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, fmt.Errorf("no VmRSS in /proc/%d/status", pid)
	}
	kib, err := strconv.ParseFloat(fields[0], 64)
	return kib / 1024, err
}
