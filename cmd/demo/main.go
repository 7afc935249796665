// Command demo shows what the llm_prefix policy does, without a GPU.
//
//	demo                              compare policies on a short replay
//	demo run --caddyfile FILE         simulators and Caddy until Ctrl-C
//
// The comparison starts three simulated vLLM servers with cold caches and a
// Caddy for each policy in turn, replays the same conversations through it and
// prints one table. Its exit status is 0 only if llm_prefix has the best
// cached-token ratio and the lowest mean time to first token, of three
// comparisons at most: times are the clock's, and the machine may be busy.
//
// Both look for the binaries vllmsim and caddy beside their own.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

func main() { process.Main(newRoot()) }

func newRoot() *cobra.Command {
	bin := ""
	root := newCompare(&bin)
	root.PersistentFlags().StringVar(&bin, "bin", "", "folder of vllmsim and caddy; that of this program if empty")
	root.AddCommand(newRun(&bin))
	return root
}

// programs are the paths of the binaries that are started.
type programs struct{ vllmsim, caddy string }

func findPrograms(bin string) (programs, error) {
	if bin == "" {
		self, err := os.Executable()
		if err != nil {
			return programs{}, fmt.Errorf("finding this program's folder: %w", err)
		}
		bin = filepath.Dir(self)
	}
	p := programs{vllmsim: filepath.Join(bin, "vllmsim"), caddy: filepath.Join(bin, "caddy")}
	for _, path := range []string{p.vllmsim, p.caddy} {
		if _, err := os.Stat(path); err != nil {
			return programs{}, errors.Join(fmt.Errorf("looking for a program: %w", err), errors.New("make build makes it"))
		}
	}
	return p, nil
}
