// Command chaos shows that nothing is lost: Caddy with the policy and six
// simulated servers under steady load of streamed and unstreamed chats, while
// servers are killed, stopped, hung, slowed, frozen, restarted, flapped, busy or
// show nonsense on their pages, and while Caddy is reloaded, with configs that
// it must refuse among them.
//
// At any time some of the servers are well, so that a proxy with a perfect
// choice could serve each request; what can't be served by any is a stream that
// is under way when its server dies. Each answer is compared with that of a
// server which nothing happens to: a simulated answer follows from its prompt
// and the seed. In the end all is as before: no request in flight, the
// goroutines and the heap as in the beginning, all servers in use.
//
// What happens when follows from the seed, which is printed first. A line for
// each bound is printed last; the exit status is 1 if one is missed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

// options are what a run is made of.
type options struct {
	caddy, vllmsim string
	seed           uint64
	length         time.Duration // of the trouble
	rate           float64       // requests per second
	reloads        int
	verbose        bool
}

// servers is how many there are; sick is how many may be in trouble at once.
const (
	servers = 6
	sick    = 3
)

func main() {
	o := options{}
	short := false
	root := &cobra.Command{
		Use: "chaos", Short: "Caddy under load while all around it breaks", Args: cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if short {
				o.length, o.reloads = shortLength, shortReloads
			}
			if o.seed == 0 {
				o.seed = uint64(time.Now().UnixNano())
			}
			return run(cmd.Context(), o)
		},
	}
	f := root.Flags()
	f.StringVar(&o.caddy, "caddy", "bin/caddy", "Caddy with the policy")
	f.StringVar(&o.vllmsim, "vllmsim", "bin/vllmsim", "the simulator")
	f.Uint64Var(&o.seed, "seed", 0, "decides what happens when; 0 is by the clock")
	f.DurationVar(&o.length, "length", 3*time.Minute, "how long it breaks; warming up and calming down come to it")
	f.Float64Var(&o.rate, "rate", 15, "requests per second")
	f.IntVar(&o.reloads, "reloads", 50, "reloads of Caddy; a quarter as many again are of configs that it must refuse")
	f.BoolVar(&o.verbose, "verbose", false, "tell what happens when")
	f.BoolVar(&short, "short", false, fmt.Sprintf("%v and %d reloads", shortLength, shortReloads))
	process.Main(root)
}

const (
	shortLength  = 15 * time.Second
	shortReloads = 10
)

var errMissed = errors.New("a bound was missed")

func run(ctx context.Context, o options) error {
	fmt.Printf("chaos: seed %d, %v, %d servers, %v requests/s, %d reloads\n", o.seed, o.length, servers, o.rate, o.reloads)
	dir, err := os.MkdirTemp("", "chaos")
	if err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	defer os.RemoveAll(dir)
	s, err := newStage(ctx, dir, o)
	if err != nil {
		return err
	}
	defer s.stop()
	outcome, err := s.play(ctx)
	if err != nil {
		return err
	}
	if !outcome.print(os.Stdout) {
		return errMissed
	}
	return nil
}
