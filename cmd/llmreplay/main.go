// Command llmreplay replays requests.
//
//	llmreplay live    --trace FILE --url http://127.0.0.1:8080
//	llmreplay virtual --trace FILE|GENERATOR --rate 0.9 --policies NAME,NAME
//	llmreplay fit     --run DIR
//	llmreplay traces
//
// "virtual" replays requests on simulated engines in virtual time, under
// llm_prefix, its rivals and oracles, and compares what clients saw.
//
// "fit" calibrates the engine model to a recorded run of a real vLLM.
//
// "live" sends a file of conversations to an OpenAI-compatible server and
// reports what its clients saw. Its exit status is 0 when at least one request
// succeeded, and 1 when all failed, on Ctrl-C and on bad usage. Errors go to
// standard error, the report goes to standard output.
package main

import (
	"github.com/spf13/cobra"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

func main() { process.Main(newRoot()) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "llmreplay",
		Short:         "Replays recorded and generated requests",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newLive(), newVirtual(), newTable(), newFit(), newTraces())
	return root
}
