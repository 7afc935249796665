package judge

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/cluster"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/workload"
)

// knees are requests a second by workload and number of replicas, found by
// Knees; that of 64 is four times that of 16.
//
//go:embed knees.json
var kneesFile []byte

// Score is what a policy got in a cell.
type Score struct {
	Mean   float64 `json:"ttft_mean_ms"`
	P99    float64 `json:"ttft_p99_ms"`
	TPOT   float64 `json:"tpot_mean_ms"`
	E2E    float64 `json:"e2e_mean_ms"`
	Hit    float64 `json:"cached_token_ratio"`
	Failed int     `json:"failed"`
}

// Line is a cell with its scores by policy.
type Line struct {
	Cell
	Scores map[string]Score `json:"scores"`
	// Shareable is what a cache of infinite size, common to all engines, would
	// supply: the bound of Score.Hit, but for the warm-up, which only Hit leaves
	// out.
	Shareable float64 `json:"infinite_cache_token_ratio"`
}

// Options of Run.
type Options struct {
	Data     string              // folder of the traces
	Short    bool                // the form for every change
	Only     string              // a part's name, empty for all
	Replicas int                 // only this number of engines; 0 for all
	Budget   time.Duration       // no replay is begun after it; 0 is no bound
	Parallel int                 // traces at once; default 1
	Progress func(done, all int) // of replays
}

// Outcome is what Run has to say.
type Outcome struct {
	Lines   []Line   `json:"cells"`
	Missing []string `json:"workloads_without_file,omitempty"` // workloads whose file isn't there
	NoKnee  []string `json:"cells_without_knee,omitempty"`     // workloads and sizes whose knee isn't known
	NotRun  int      `json:"cells_not_run"`                    // cells for which there was no time
}

// Only keeps the lines of a part and of a number of engines; an empty name and 0
// keep all.
func (o *Outcome) Only(part string, replicas int) {
	o.Lines = slices.DeleteFunc(o.Lines, func(l Line) bool {
		return part != "" && l.Part != part || replicas != 0 && l.Replicas != replicas
	})
}

// Run runs the table. The lines are in the order of the cells.
func Run(ctx context.Context, o Options) (*Outcome, error) {
	knees, err := readKnees()
	if err != nil {
		return nil, err
	}
	out := &Outcome{}
	var cells []Cell
	gone := make(map[string]bool)
	for i := range workloads {
		if w := &workloads[i]; w.absent(o.Data) {
			out.Missing = append(out.Missing, w.Name)
			gone[w.Name] = true
		}
	}
	for _, p := range parts(o.Short) {
		if o.Only != "" && p.name != o.Only {
			continue
		}
		for _, c := range p.cells(o.Data) {
			if gone[c.Workload] || o.Replicas != 0 && c.Replicas != o.Replicas {
				continue
			}
			if kneeOf(knees[c.Workload], c.Replicas) == 0 {
				if name := fmt.Sprintf("%s N=%d", c.Workload, c.Replicas); !slices.Contains(out.NoKnee, name) {
					out.NoKnee = append(out.NoKnee, name)
				}
				continue
			}
			cells = append(cells, c)
		}
	}
	lines, err := replay(ctx, cells, knees, o)
	if err != nil {
		return nil, err
	}
	out.Lines, out.NotRun = lines, len(cells)-len(lines)
	return out, ctx.Err()
}

// replay returns the lines of those cells all of whose runs could be made, in
// the order of the cells.
func replay(ctx context.Context, cells []Cell, knees map[string]map[int]float64, o Options) ([]Line, error) {
	runs := make([][]run, len(cells))
	for i := range cells {
		c := &cells[i]
		runs[i] = c.runs(c.Share * kneeOf(knees[c.Workload], c.Replicas))
	}
	r := runner{ctx: ctx, jobs: jobsOf(runs), progress: o.Progress}
	if o.Budget > 0 {
		r.end = time.Now().Add(o.Budget)
	}
	if err := r.run(o.Parallel); err != nil {
		return nil, err
	}
	var lines []Line
	for i, c := range cells {
		line := Line{Cell: c, Scores: make(map[string]Score)}
		for _, which := range runs[i] {
			if s, ok := r.scores[which]; ok {
				line.Scores[which.policy] = s
				line.Shareable = r.shareable[which.trace]
			}
		}
		if len(line.Scores) == len(runs[i]) {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// requestsFor leaves larger clusters time to come into balance.
func requestsFor(replicas int) int { return requests * max(replicas, 16) / 16 }

func score(o *cluster.Outcome) Score {
	s := Score{
		Mean: cluster.Mean(o.TTFT), P99: percentile(o.TTFT, 0.99), TPOT: cluster.Mean(o.TPOT), E2E: cluster.Mean(o.E2E), Failed: o.Failed,
	}
	if o.PromptTokens > 0 {
		s.Hit = float64(o.CachedTokens) / float64(o.PromptTokens)
	}
	return s
}

// percentile of sorted values.
func percentile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func (w *Workload) absent(data string) bool {
	if w.File == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(data, filepath.FromSlash(w.File)))
	return errors.Is(err, os.ErrNotExist)
}

const scaledFrom = 16

func kneeOf(known map[int]float64, replicas int) float64 {
	if replicas > scaledFrom {
		return known[scaledFrom] * float64(replicas) / scaledFrom
	}
	return known[replicas]
}

func readKnees() (map[string]map[int]float64, error) {
	knees := make(map[string]map[int]float64)
	if err := json.Unmarshal(kneesFile, &knees); err != nil {
		return nil, fmt.Errorf("reading knees: %w", err)
	}
	return knees, nil
}

// Knees searches the knees of all workloads that are there, and keeps those
// known of the others; with known, also those known of these. It tells save of
// all knees after each that it finds.
func Knees(ctx context.Context, data string, known bool, save func(all []byte) error, report func(name string, replicas int, rate float64)) error {
	knees, err := readKnees()
	if err != nil {
		return err
	}
	for _, n := range []int{4, 8, scaledFrom} {
		for i := range workloads {
			w := &workloads[i]
			if w.absent(data) || known && knees[w.Name][n] > 0 {
				continue
			}
			rate, err := cluster.Knee(ctx, func(rate float64) (*workload.Workload, error) {
				return workload.Open(w.open(data), workload.Options{Requests: requestsFor(n), Rate: rate, Seed: 1})
			}, cluster.Config{Replicas: n, Engine: engine()})
			if err != nil {
				return fmt.Errorf("%s, %d replicas: %w", w.Name, n, err)
			}
			if knees[w.Name] == nil {
				knees[w.Name] = make(map[int]float64)
			}
			knees[w.Name][n] = float64(int(rate*100)) / 100
			report(w.Name, n, rate)
			all, err := json.MarshalIndent(knees, "", "\t")
			if err == nil {
				err = save(append(all, '\n'))
			}
			if err != nil {
				return fmt.Errorf("keeping knees: %w", err)
			}
		}
	}
	return nil
}
