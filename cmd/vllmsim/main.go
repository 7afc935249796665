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
// What can be set and broken, by a file and at run time, is told by
//
//	vllmsim --help
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/heap"
)

func main() {
	heap.Pace()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "vllmsim:", err)
		os.Exit(1)
	}
}
