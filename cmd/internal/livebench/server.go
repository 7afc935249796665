package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/heap"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmapi"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

// roles are the engines of the child processes: one without latency, and one
// that takes 2 s for a step and has room for all idle streams.
var roles = map[string]simengine.Config{
	"fast": {Blocks: 200_000, MaxNumSeqs: 1024, MaxNumBatchedTokens: 8192, MaxModelLen: 4096, Cost: simengine.Cost{Base: 1}},
	"idle": {Blocks: 200_000, MaxNumSeqs: 20_000, MaxNumBatchedTokens: 1 << 20, MaxModelLen: 4096, Cost: simengine.Cost{Base: 2 * time.Second}},
}

// serve runs a server, as vllmsim does, until stdin ends.
func serve(role, profile string) error {
	config, ok := roles[role]
	if !ok {
		return fmt.Errorf("unknown role %q", role)
	}
	heap.Pace()
	engine, err := simengine.New(config)
	if err != nil {
		return err
	}
	var driver *live.Driver
	exporter, err := vllmmetrics.New(vllmmetrics.Options{
		Model: "m", Cache: vllmmetrics.CacheInfoOf(config), Start: time.Now(), MaxModelLen: config.MaxModelLen,
		Stats: func(int) simengine.Stats { return driver.Stats() },
	})
	if err != nil {
		return err
	}
	driver = live.New(engine, live.Options{Speed: 1, Observe: exporter.Observer(0)})
	api, err := vllmapi.New(vllmapi.Config{Model: "m", Driver: driver, Exporter: exporter, DevMode: true})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = driver.Run(ctx) }() // ends with ctx
	server := api.HTTPServer(time.Minute)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent has had enough
		_ = server.Close()
	}()
	fmt.Println(listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// child is a process with a server.
type child struct {
	addr  string
	cmd   *exec.Cmd
	stdin io.Closer
}

func start(role, profile string) (*child, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "-role", role, "-cpuprofile", profile)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("waiting for the server: %w", err)
	}
	return &child{strings.TrimSpace(line), cmd, stdin}, nil
}

// stop ends the server, once.
func (c *child) stop() {
	if c.stdin.Close() == nil {
		_ = c.cmd.Wait() // it only served
	}
}
