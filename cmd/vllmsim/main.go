// Command vllmsim serves simulated vLLM servers, to try routers and clients
// without a GPU.
//
//	vllmsim --listen 127.0.0.1:9101 --count 3 --preset llama3.1-8b-h100
//
// Each server has its own engine, KV cache and metrics. When all listen, one
// line for each goes to standard output:
//
//	vllmsim: listening on http://127.0.0.1:9101 model=llama3.1-8b preset=llama3.1-8b-h100
//
// It runs until SIGINT or SIGTERM, and its exit status is 0 then. It is 1 if
// an option makes no sense or a port is taken; then nothing listens.
//
// # Faults
//
// --faults names a file with a JSON list of what goes wrong, such as
//
//	[
//	  {"kind": "status", "status": 503, "after_requests": 100, "count": 5},
//	  {"kind": "close_stream", "tokens": 10, "at": "10s", "for": "5s", "servers": [0]},
//	  {"kind": "metrics", "status": 200, "body": "", "at": "1m"},
//	  {"kind": "slow", "factor": 3, "at": "20s", "for": "10s"}
//	]
//
// Kinds and members are those of vllmapi.Fault. Times are of the wall clock,
// since the servers began to listen. Servers count from 0; without "servers"
// all have the fault.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "vllmsim:", err)
		os.Exit(1)
	}
}
