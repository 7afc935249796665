package fit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// row is a line of requests.jsonl. Times are seconds on clocks that may differ;
// those that are missing are NaN.
type row struct {
	ID             string
	Prompt, Output int
	Arrived, Queued, Scheduled,
	First, Last float64
	ordinal int // among the lines of the file
}

// maxLine bounds a line of a recording in bytes; one of workload_tokens.jsonl
// has 7 bytes for each token.
const maxLine = 64 << 20

// lines calls f with each line that isn't blank, and its number.
func lines(r io.Reader, f func(n int, line []byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	n := 0
	for s.Scan() {
		n++
		line := bytes.TrimSpace(s.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := f(n, line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return s.Err()
}

func readRequests(dir string, note func(string, ...any)) ([]row, error) {
	f, err := os.Open(filepath.Join(dir, "requests.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	defer f.Close()
	var rows []row
	missing := map[string]int{}
	err = lines(f, func(n int, line []byte) error {
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			return err
		}
		if len(rows) == maxRequests {
			return fmt.Errorf("more than %d requests", maxRequests)
		}
		number := func(names ...string) float64 {
			for _, name := range names {
				if x, ok := fields[name].(float64); ok {
					return x
				}
			}
			missing[names[0]]++
			return math.NaN()
		}
		x := row{
			ordinal: len(rows),
			Arrived: number("arrival_time"), Queued: number("queued_ts"), Scheduled: number("scheduled_ts"),
			First: number("first_token_ts"), Last: number("last_token_ts"),
		}
		prompt, output := number("input_toks", "prompt_tokens"), number("output_toks", "completion_tokens")
		if id, ok := fields["request_id"]; ok {
			x.ID = fmt.Sprint(id)
		} else {
			x.ID = fmt.Sprintf("line-%d", n)
		}
		if prompt >= 1 && prompt <= 1<<30 && output >= 1 && output <= 1<<30 {
			x.Prompt, x.Output = int(prompt), int(output)
		}
		rows = append(rows, x)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading requests.jsonl: %w", err)
	}
	if len(rows) == 0 {
		return nil, errors.New("reading requests.jsonl: no requests")
	}
	return complete(rows, missing, note)
}

// complete drops the requests that never ended, and refuses a recording in
// which a whole column that matters is missing.
func complete(rows []row, missing map[string]int, note func(string, ...any)) ([]row, error) {
	all := len(rows)
	var absent []string
	for _, name := range []string{"input_toks", "output_toks", "first_token_ts", "last_token_ts"} {
		if missing[name] == all {
			absent = append(absent, name)
		}
	}
	if missing["arrival_time"] == all && missing["queued_ts"] == all {
		absent = append(absent, "arrival_time and queued_ts")
	}
	if len(absent) > 0 {
		return nil, fmt.Errorf("reading requests.jsonl: no request has %s", strings.Join(absent, ", "))
	}
	for _, name := range []string{"arrival_time", "queued_ts", "scheduled_ts"} {
		if missing[name] == all {
			note("requests.jsonl has no %s", name)
		}
	}
	rows = slices.DeleteFunc(rows, func(x row) bool {
		return x.Prompt == 0 || x.Output == 0 || math.IsNaN(x.First) || math.IsNaN(x.Last) ||
			math.IsNaN(x.Arrived) && math.IsNaN(x.Queued)
	})
	if len(rows) == 0 {
		return nil, errors.New("reading requests.jsonl: no request is complete")
	}
	if n := all - len(rows); n > 0 {
		note("%d of %d requests are incomplete and left out, with the load they were", n, all)
	}
	return rows, nil
}
