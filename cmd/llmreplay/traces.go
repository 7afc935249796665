package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

func newTraces() *cobra.Command {
	return &cobra.Command{
		Use:   "traces",
		Short: "Lists the formats of conversation files",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := cmd.OutOrStdout()
			fmt.Fprintln(w, "Records as JSON Lines or as one JSON array, plain or gzip:")
			for _, f := range trace.Formats() {
				if _, err := fmt.Fprintf(w, "  %-14s %s\n", f.Name, f.About); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
