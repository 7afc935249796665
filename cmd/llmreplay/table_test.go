package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What --json wrote is shown as it was, and a miss is one still.
func TestATableIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	cell := func(replicas string, mean string) string {
		return `{"part":"oracle","workload":"hot","replicas":` + replicas + `,"rate_vs_knee":0.9,"seed":1,"variant":"healthy","scores":{
			"llm_prefix":{"ttft_mean_ms":` + mean + `,"ttft_p99_ms":200},"oracle_ttft":{"ttft_mean_ms":100,"ttft_p99_ms":200}}}`
	}
	text := `{"cells":[` + cell("8", "120") + "," + cell("4", "90") + `],"cells_not_run":7,"bounds":[]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for replicas, want := range map[string][]string{
		"0": {"1.200/1.000", "0.900/1.000", "7 of 9 cells", "MISSED 1.200, at most 1.12"},
		"4": {"0.900/1.000", "ok     0.900"},
	} {
		var out bytes.Buffer
		cmd := newTable()
		cmd.SetArgs([]string{"--read", file, "--replicas", replicas})
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SilenceUsage = true
		if err := cmd.Execute(); (err != nil) != (replicas == "0") {
			t.Errorf("%s replicas: %v, want an error if a bound is missed", replicas, err)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s replicas: no %q in\n%s", replicas, w, out.String())
			}
		}
		if replicas == "4" && strings.Contains(out.String(), "1.200") {
			t.Errorf("4 replicas: cells of others are shown:\n%s", out.String())
		}
	}
}
