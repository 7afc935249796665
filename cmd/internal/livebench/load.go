package main

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// chatRequest is a whole request, as bytes.
func chatRequest(tokens int, stream bool) []byte {
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"Tell me, what is the weather like in the south of France in May?"}],"max_tokens":%d,"ignore_eos":true,"stream":%v}`, tokens, stream)
	return fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// reader takes one answer from a connection and returns how much it counts for.
type reader func(c net.Conn, buf []byte) (int, error)

// load sends a request again and again on each of the connections, waiting for
// each answer, and returns what was counted.
func load(addr string, request []byte, length time.Duration, count reader) (int64, error) {
	var sum atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	begin := time.Now()
	for range connections {
		group.Go(func() {
			if err := send(addr, request, begin.Add(length), count, &sum); err != nil {
				failed.Store(&err)
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return sum.Load(), nil
}

func send(addr string, request []byte, end time.Time, count reader, sum *atomic.Int64) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	buf := make([]byte, 64<<10)
	for time.Now().Before(end) {
		if _, err := c.Write(request); err != nil {
			return err
		}
		n, err := count(c, buf)
		if err != nil {
			return err
		}
		sum.Add(int64(n))
	}
	return nil
}

var okStatus = []byte("HTTP/1.1 200 OK\r\n")

// countAnswers reads an answer with a Content-Length.
func countAnswers(c net.Conn, buf []byte) (int, error) {
	have, want := 0, -1
	for want < 0 || have < want {
		n, err := c.Read(buf[have:])
		if err != nil {
			return 0, err
		}
		have += n
		if want >= 0 {
			continue
		}
		head := bytes.Index(buf[:have], []byte("\r\n\r\n"))
		if head < 0 {
			continue
		}
		_, rest, ok := bytes.Cut(buf[:head+2], []byte("Content-Length: "))
		digits, _, _ := bytes.Cut(rest, []byte("\r\n"))
		length, err := strconv.Atoi(string(digits))
		if err != nil || !ok || !bytes.HasPrefix(buf, okStatus) {
			return 0, fmt.Errorf("answer begins with %q", buf[:head])
		}
		want = head + 4 + length
	}
	return 1, nil
}

var (
	chunk   = []byte("data: {")
	lastEnd = []byte("\n\n\r\n0\r\n\r\n") // of the last event, of its chunk, of all
)

// countChunks reads a stream in chunks to its end. A chunk whose mark lies
// across two reads is counted by its part in the second.
func countChunks(c net.Conn, buf []byte) (int, error) {
	chunks, kept := 0, 0
	for first := true; ; first = false {
		n, err := c.Read(buf[kept:])
		if err != nil {
			return 0, err
		}
		have := buf[:kept+n]
		if first && !bytes.HasPrefix(have, okStatus) {
			return 0, fmt.Errorf("answer begins with %q", have[:min(len(have), 200)])
		}
		chunks += bytes.Count(have, chunk)
		if bytes.HasSuffix(have, lastEnd) {
			return chunks, nil
		}
		// What may be the beginning of either mark; it holds no whole one of chunk.
		kept = min(len(have), len(chunk)-1, len(have))
		copy(buf, have[len(have)-kept:])
	}
}
