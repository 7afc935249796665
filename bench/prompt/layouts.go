package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// itself is what is built anew for each layout.
const itself = "github.com/caddyllm/caddy-llm-prefix/caddyllm/bench/prompt"

// result is what one series took in a process of its own.
type result struct {
	Took   []float64
	Allocs float64
}

// measureInLayouts has all measured by programs that differ in where the linker put
// each function, and gathers what they took. Where loops happen to stand makes
// encoding/json faster or slower by a quarter, so that any change to any package
// would move the ratios otherwise.
func measureInLayouts(all []*series, data string, rounds, layouts int) error {
	folder, err := os.MkdirTemp("", "bench-prompt-")
	if err != nil {
		return fmt.Errorf("making a folder for the programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is a temporary one
	for layout := 1; layout <= layouts; layout++ {
		program := filepath.Join(folder, strconv.Itoa(layout))
		build := exec.Command("go", "build", "-ldflags=-randlayout="+strconv.Itoa(layout), "-o", program, itself)
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building layout %d: %w: %s", layout, err, out)
		}
		part := rounds*layout/layouts - rounds*(layout-1)/layouts
		run := exec.Command(program, "--raw", "--data", data, "--rounds", strconv.Itoa(part))
		var failed bytes.Buffer
		run.Stderr = &failed
		out, err := run.Output()
		if err != nil {
			return fmt.Errorf("measuring layout %d: %w: %s", layout, err, &failed)
		}
		var results []result
		if err := json.Unmarshal(out, &results); err != nil {
			return fmt.Errorf("reading the results of layout %d: %w", layout, err)
		}
		if len(results) != len(all) {
			return fmt.Errorf("layout %d has %d results, want %d", layout, len(results), len(all))
		}
		for i, s := range all {
			s.took = append(s.took, results[i].Took...)
			s.allocs = max(s.allocs, results[i].Allocs)
		}
	}
	return nil
}

// printRaw is how such a program tells its results.
func printRaw(all []*series) error {
	var results []result
	for _, s := range all {
		results = append(results, result{s.took, s.allocs})
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}
