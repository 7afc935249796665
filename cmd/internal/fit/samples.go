package fit

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func readSamples(dir string, note func(string, ...any)) ([]Sample, error) {
	f, err := os.Open(filepath.Join(dir, "timeseries.csv"))
	if errors.Is(err, fs.ErrNotExist) {
		note("there is no timeseries.csv: no curves, and blocks are told from the requests alone")
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	defer f.Close()
	samples, err := parseSamples(f, note)
	if err != nil {
		return nil, fmt.Errorf("reading timeseries.csv: %w", err)
	}
	return samples, nil
}

func parseSamples(r io.Reader, note func(string, ...any)) ([]Sample, error) {
	c := csv.NewReader(r)
	c.FieldsPerRecord = -1
	header, err := c.Read()
	if errors.Is(err, io.EOF) {
		note("timeseries.csv is empty")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range header {
		header[i] = strings.TrimSpace(strings.TrimPrefix(header[i], "\ufeff"))
	}
	column := func(name string) int {
		i := slices.Index(header, name)
		if i < 0 {
			note("timeseries.csv has no column %s", name)
		}
		return i
	}
	at, running, waiting, usage := column("t"), column("running"), column("waiting"), column("kv_cache_pct")
	if at < 0 {
		return nil, nil
	}
	var samples []Sample
	top := 0.0
	for {
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		field := func(i int) (float64, bool) {
			if i < 0 || i >= len(record) {
				return 0, false
			}
			x, err := strconv.ParseFloat(strings.TrimSpace(record[i]), 64)
			return x, err == nil
		}
		t, ok := field(at)
		if !ok {
			line, _ := c.FieldPos(0)
			return nil, fmt.Errorf("line %d: t is not a number", line)
		}
		s := Sample{At: seconds(t), Running: -1, Waiting: -1, Usage: -1}
		if x, ok := field(running); ok {
			s.Running = int(x)
		}
		if x, ok := field(waiting); ok {
			s.Waiting = int(x)
		}
		if x, ok := field(usage); ok {
			s.Usage = x / 100
			top = max(top, s.Usage)
		}
		samples = append(samples, s)
	}
	// Recorders that asked vLLM for a name that it had dropped wrote zeros.
	if usage >= 0 && top == 0 {
		note("kv_cache_pct of timeseries.csv is 0 throughout and taken as not recorded")
		for i := range samples {
			samples[i].Usage = -1
		}
	}
	slices.SortStableFunc(samples, func(a, b Sample) int { return int(min(max(a.At-b.At, -1), 1)) })
	return samples, nil
}
