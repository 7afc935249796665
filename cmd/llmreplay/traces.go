package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/cluster"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/rivals"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/workload"
)

func newTraces() *cobra.Command {
	return &cobra.Command{
		Use:   "traces",
		Short: "Lists the formats, generators, policies and scenarios it knows",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := cmd.OutOrStdout()
			list := func(title string, lines [][2]string) {
				fmt.Fprintln(w, title)
				for _, l := range lines {
					fmt.Fprintf(w, "  %-17s %s\n", l[0], l[1])
				}
			}
			var formats, generators, policies [][2]string
			for _, f := range trace.Formats() {
				formats = append(formats, [2]string{f.Name, f.About})
			}
			for _, g := range workload.Generators() {
				generators = append(generators, [2]string{g.Name, g.About + ": " + g.Usage()})
			}
			for _, p := range rivals.All() {
				about := p.About
				if u := p.Usage(); u != "" {
					about += " (" + u + ")"
				}
				policies = append(policies, [2]string{p.Name, about})
			}
			list("Conversations, for live and virtual, as JSON Lines or one JSON array, plain or gzip:", formats)
			list("\nRequests without text, for virtual, plain or gzip:", workload.Formats())
			list("\nGenerators, for virtual, as NAME or NAME:parameter=value,...:", generators)
			list("\nPolicies, for virtual, as NAME or NAME:setting=value,...:", policies)
			list("\nScenarios, for virtual:", cluster.Scenarios())
			return nil
		},
	}
}
