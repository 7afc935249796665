package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

const (
	modelName = "tiny-llama"
	// importLimit is how long a server may take to be ready: Python reads some
	// 20,000 files first, on a busy machine from a cold disk.
	importLimit = 40 * time.Minute
	// blockSize is the smallest that vLLM's attention on a CPU takes.
	blockSize = 32
)

// shape is what differs between the servers that are started. Zeros leave
// vLLM's defaults.
type shape struct {
	model     model
	blocks    int // KV blocks, one of which vLLM keeps for itself
	maxLen    int // --max-model-len
	seqs      int // --max-num-seqs
	budget    int // --max-num-batched-tokens
	requests  int // --max-num-queued-reqs, which counts running ones too
	developer bool
	events    string // endpoint of KV events
	tools     bool
}

func (s shape) args() []string {
	args := []string{
		"--served-model-name", modelName, "--dtype", "float32", "--enforce-eager",
		"--block-size", strconv.Itoa(blockSize), "--enable-prefix-caching", "--enable-prompt-tokens-details",
		"--num-gpu-blocks-override", strconv.Itoa(s.blocks), "--max-model-len", strconv.Itoa(s.maxLen),
		"--max-num-seqs", strconv.Itoa(s.seqs), "--max-num-batched-tokens", strconv.Itoa(s.budget),
	}
	if s.requests > 0 {
		args = append(args, "--max-num-queued-reqs", strconv.Itoa(s.requests))
	}
	if s.tools {
		args = append(args, "--enable-auto-tool-choice", "--tool-call-parser", "hermes")
	}
	if s.events != "" {
		args = append(args, "--kv-events-config",
			fmt.Sprintf(`{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":%q,"topic":"kv"}`, s.events))
	}
	return args
}

// server is one vLLM.
type server struct {
	*process.Child
	address string // host:port
}

// serve starts a server on a free port, with its log in dir, and waits until
// it is healthy.
func (h *home) serve(ctx context.Context, dir string, s shape) (*server, error) {
	v, err := h.begin(dir, s)
	if err != nil {
		return nil, err
	}
	if err := v.ready(ctx); err != nil {
		v.Stop()
		return nil, err
	}
	return v, nil
}

// begin starts a server without waiting.
func (h *home) begin(dir string, s shape) (*server, error) {
	address, err := process.FreeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("finding a port: %w", err)
	}
	env := []string{
		"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1",
		// A GB is the least that it takes; the blocks are counted by the flag.
		"VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CPU_OMP_THREADS_BIND=nobind", "OMP_NUM_THREADS=1", "CUDA_VISIBLE_DEVICES=",
		// Compiling pieces of PyTorch takes minutes and is used a few times.
		"TORCHDYNAMO_DISABLE=1",
		// Hashes of blocks that are the same in each run.
		"PYTHONHASHSEED=0",
	}
	if s.developer {
		env = append(env, "VLLM_SERVER_DEV_MODE=1")
	}
	c, err := process.Start(process.Spec{
		Path: h.python(), Dir: dir, Env: env, LogOutput: true, StartLimit: importLimit,
		// The command vllm looks for a package vllm, and this one is vllm-cpu.
		Args: append([]string{"-m", "vllm.entrypoints.openai.api_server", "--model", h.model(s.model), "--host", host, "--port", port}, s.args()...),
	})
	if err != nil {
		return nil, err
	}
	return &server{Child: c, address: address}, nil
}

func (v *server) ready(ctx context.Context) error {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return v.Await(ctx, func() bool {
		res, err := client.Get("http://" + v.address + "/health")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}
