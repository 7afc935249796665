// Command soak shows that nothing grows: two million requests through the
// decision, in virtual time with upstreams that come and go, and a hundred
// thousand through Caddy. What is alive on the heap is looked at after each
// tenth; once the first is over it may not grow any more. A line for each bound
// is printed last; the exit status is 1 if one is missed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

type options struct {
	caddy, vllmsim string
	virtual, live  int // requests
	seed           uint64
}

func main() {
	o := options{}
	root := &cobra.Command{
		Use: "soak", Short: "Many requests, and a heap that doesn't grow", Args: cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), os.Stdout, o) },
	}
	f := root.Flags()
	f.StringVar(&o.caddy, "caddy", "bin/caddy", "Caddy with the policy")
	f.StringVar(&o.vllmsim, "vllmsim", "bin/vllmsim", "the simulator")
	f.IntVar(&o.virtual, "virtual", 2_000_000, "requests in virtual time; 0 leaves them out")
	f.IntVar(&o.live, "live", 100_000, "requests through Caddy; 0 leaves them out")
	f.Uint64Var(&o.seed, "seed", 1, "of the requests")
	process.Main(root)
}

var errMissed = errors.New("a bound was missed")

func run(ctx context.Context, w io.Writer, o options) error {
	var all []check
	for _, part := range []struct {
		name     string
		requests int
		soak     func(context.Context, options) (outcome, error)
	}{{"virtual time", o.virtual, virtual}, {"through Caddy", o.live, live}} {
		if part.requests == 0 {
			continue
		}
		if part.requests < tenths {
			return fmt.Errorf("%s: %d requests, want at least %d, or 0 for none", part.name, part.requests, tenths)
		}
		began := time.Now()
		out, err := part.soak(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Fprintf(w, "%s: %d requests in %.0f s; heap after each tenth, MiB:", part.name, part.requests, time.Since(began).Seconds())
		for _, mib := range out.heap {
			fmt.Fprintf(w, " %.1f", mib)
		}
		fmt.Fprintln(w)
		all = append(all, out.checks(part.name)...)
	}
	fmt.Fprintf(w, "\n| bound | got | at most | |\n|---|---|---|---|\n")
	ok := true
	for _, c := range all {
		word := "ok"
		if c.got > c.most {
			word, ok = "MISSED", false
		}
		fmt.Fprintf(w, "| %s | %.4g | %.4g | %s |\n", c.what, c.got, c.most, word)
	}
	if !ok {
		return errMissed
	}
	return nil
}

// tenths is how often the heap is looked at.
const tenths = 10

// The heap may be so much above that of the first tenth, whatever is garbage of
// the moment.
const (
	growthMax = 1.05
	growthMiB = 2
)

// outcome is what a part came to.
type outcome struct {
	heap     []float64 // MiB, after each tenth
	failed   int       // requests
	inFlight int       // in the end
	more     []check
}

type check struct {
	what      string
	got, most float64
}

func (o *outcome) checks(name string) []check {
	return append([]check{
		{name + ": most on the heap after the first tenth, MiB", slices.Max(o.heap[1:]), o.heap[0]*growthMax + growthMiB},
		{name + ": requests that failed", float64(o.failed), 0},
		{name + ": in flight in the end", float64(o.inFlight), 0},
	}, o.more...)
}
