package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

// server is one simulated vLLM server, a process of its own that can die.
type server struct {
	*process.Child
	path, dir      string
	address, admin string
	speed          string
	trouble        sync.Mutex // one at a time; a slow start may last into the next
}

// startServer starts one at addresses of its own. All of a run say the same.
func startServer(ctx context.Context, path, dir, speed string) (*server, error) {
	s := &server{path: path, dir: dir, speed: speed}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	var err error
	if s.address, err = process.FreeAddress(); err != nil {
		return nil, err
	}
	if s.admin, err = process.FreeAddress(); err != nil {
		return nil, err
	}
	return s, s.start(ctx)
}

func (s *server) start(ctx context.Context) error {
	var err error
	s.Child, err = process.Start(process.Spec{Path: s.path, Dir: s.dir, LogOutput: true, Args: []string{
		"--listen", s.address, "--count", "1", "--admin", s.admin, "--seed", "7", "--speed", s.speed,
	}})
	if err != nil {
		return err
	}
	if err := s.Await(ctx, func() bool { return process.Answers(s.address) && process.Answers(s.admin) }); err != nil {
		s.Stop()
		return err
	}
	return nil
}

// suffer goes through one trouble, to its end.
func (s *server) suffer(ctx context.Context, t trouble) error {
	rng := rand.New(rand.NewPCG(t.seed, 1))
	switch t.kind {
	case killed:
		s.Kill()
		wait(ctx, t.lasts)
		return s.start(ctx)
	case stopped:
		if err := syscall.Kill(s.PID(), syscall.SIGSTOP); err != nil {
			return fmt.Errorf("stopping a server: %w", err)
		}
		wait(ctx, t.lasts)
		if err := syscall.Kill(s.PID(), syscall.SIGCONT); err != nil {
			return fmt.Errorf("waking a server: %w", err)
		}
		return nil
	case flapped:
		for end := time.Now().Add(t.lasts); time.Now().Before(end); {
			off := time.Duration(100+rng.IntN(400)) * time.Millisecond
			if err := s.fault(ctx, map[string]any{"kind": "refuse", "for": off.String()}); err != nil {
				return err
			}
			wait(ctx, off+time.Duration(100+rng.IntN(400))*time.Millisecond)
		}
		return s.recover(ctx)
	}
	f := map[string]any{"for": t.lasts.String()}
	switch t.kind {
	case hung:
		f["kind"] = "hang"
	case paused:
		f["kind"] = "pause"
	case slowed:
		f["kind"], f["factor"] = "slow", 8
	case restart:
		f["kind"] = "restart"
	case busy:
		f["kind"], f["status"], f["header"] = "status", 503, map[string]string{"Retry-After": "1"}
	case limited:
		f["kind"], f["status"], f["header"] = "status", 429, map[string]string{"Retry-After": "999999999999"}
	case closed:
		f["kind"] = "close"
	case cut:
		f["kind"], f["tokens"], f["share"] = "close_stream", 5, 0.3
	case early:
		f["kind"] = "close_stream"
	case hostile:
		pages := []string{
			"", "<html>no</html>", "vllm:num_requests_waiting NaN\nvllm:num_requests_running -7\n",
			"vllm:num_requests_waiting{a=\"" + string(bytes.Repeat([]byte("x"), 1<<16)), "{}", "\x00\x01\xff",
			"vllm:num_requests_waiting 1e308\nvllm:num_requests_running 1e308\n",
		}
		f["kind"], f["body"] = "metrics", pages[rng.IntN(len(pages))]
		f["status"] = []int{200, 200, 500, 307}[rng.IntN(4)]
	case frozen:
		f["kind"] = "metrics_frozen"
	}
	if err := s.fault(ctx, f); err != nil {
		return err
	}
	wait(ctx, t.lasts)
	return s.recover(ctx)
}

// fault has the server break, as its admin interface is told.
func (s *server) fault(ctx context.Context, f map[string]any) error {
	body, err := json.Marshal([]any{f})
	if err != nil {
		return fmt.Errorf("breaking a server: %w", err)
	}
	return s.ask(ctx, http.MethodPost, body)
}

// recover ends all that is wrong.
func (s *server) recover(ctx context.Context) error { return s.ask(ctx, http.MethodDelete, nil) }

func (s *server) ask(ctx context.Context, method string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.admin+"/faults", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("breaking a server: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("breaking a server: %w", err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10)); res.StatusCode != http.StatusOK {
		return fmt.Errorf("breaking a server: status %d: %s", res.StatusCode, text)
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func serverDir(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("server%d", i)) }
