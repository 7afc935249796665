package fit

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

func preset(t *testing.T, name string, change func(*simengine.Config)) simengine.Config {
	t.Helper()
	p, ok := simengine.PresetByName(name)
	if !ok {
		t.Fatalf("no preset %s", name)
	}
	c := p.Config
	c.AsyncScheduling = true
	c.Cost.RequestOverhead = 0
	if change != nil {
		change(&c)
	}
	c.MaxModelLen = min(c.MaxModelLen, c.KVTokens())
	return c
}

func fitted(t *testing.T, dir string) (*Run, simengine.Config, *Report) {
	t.Helper()
	run, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, tl, err := run.Fit(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return run, c, run.Report(c, tl, nil)
}

// Coefficients that made a recording are found again, on whatever hardware and
// from whatever is missing in it, and the simulation then is the recording.
func TestFitRecoversTheCoefficients(t *testing.T) {
	small := func(blocks int) func(*simengine.Config) {
		return func(c *simengine.Config) { c.Blocks = blocks }
	}
	for name, rc := range map[string]recording{
		"data-parallel engines": {
			config: preset(t, "llama3.1-8b-h100", small(3000)), requests: 160, gap: 15 * time.Millisecond, prompt: 900, output: 150,
			replicas: 2,
		},
		"all there": {
			config: preset(t, "llama3.1-8b-h100", small(3000)), requests: 160, gap: 25 * time.Millisecond, prompt: 900, output: 150,
		},
		"pool never short": {
			config: preset(t, "llama3.1-8b-a100", nil), requests: 120, gap: 150 * time.Millisecond, prompt: 700, output: 120,
		},
		"tensor parallel, other budget, synchronous": {
			config: preset(t, "llama3-70b-tp4-h100", func(c *simengine.Config) {
				c.Blocks, c.MaxNumBatchedTokens, c.MaxNumSeqs, c.AsyncScheduling = 5000, 512, 32, false
			}),
			requests: 140, gap: 120 * time.Millisecond, prompt: 900, output: 150,
		},
		"mixture of experts": {
			config: preset(t, "llama3.1-8b-rtxpro6000", func(c *simengine.Config) {
				c.Cost.Base, c.Cost.Experts, c.Cost.ExpertShare = 5*time.Millisecond, 24*time.Millisecond, 1./16
			}),
			requests: 160, gap: 200 * time.Millisecond, prompt: 300, output: 150,
		},
		"prefill in the shadow of the weights": {
			config: preset(t, "llama3.1-8b-rtxpro6000", func(c *simengine.Config) {
				c.Cost.PrefillFree = 330
			}),
			requests: 160, gap: 100 * time.Millisecond, prompt: 500, output: 100,
		},
		"long first step": {
			config: preset(t, "llama3.1-8b-rtx4090", func(c *simengine.Config) {
				c.Cost.FirstStep = 300 * time.Millisecond
			}),
			requests: 140, gap: 120 * time.Millisecond, prompt: 700, output: 150,
		},
		"without scheduled_ts, nor timeseries": {
			config: preset(t, "llama3.1-8b-h200", small(4000)), requests: 160, gap: 25 * time.Millisecond, prompt: 900, output: 150,
			drop: []string{"scheduled_ts"}, remove: []string{"timeseries.csv"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c, rep := fitted(t, rc.write(t))
			bounds := Bounds{LatencyMAPE: 0.5, Middle: 0.5, Tail: 1}
			if rc.config.Cost.PrefillFree > 0 {
				bounds = WholeBounds // it is found to some percent
			}
			if missed := rep.Check(bounds); len(missed) > 0 {
				t.Error(missed)
			}

			// A coefficient is as wrong as the time that it misjudges: one that is
			// hardly paid is hardly known.
			tl, err := rc.load().Simulate(rc.config)
			if err != nil {
				t.Fatal(err)
			}
			steps := tl.steps[0]
			done := steps.done[len(steps.done)-1]
			done[firstStep] = 1
			got, want := coefficients(c.Cost), coefficients(rc.config.Cost)
			for i := range got {
				if off := math.Abs(got[i]-want[i]) * done[i] / dot(done, want); off > 0.02 {
					t.Errorf("coefficient %d is %.4g, want %.4g: %.1f %% of all time is misjudged", i, got[i], want[i], 100*off)
				}
			}
			t.Logf("MAPE %.3f %%, coefficients %.4g, want %.4g", rep.LatencyMAPE, got, want)
		})
	}
}

// What the model leaves out shows as noise; the error stays within the bounds.
func TestFitBearsNoise(t *testing.T) {
	rc := recording{
		config: preset(t, "llama3.1-8b-h100", func(c *simengine.Config) { c.Blocks = 3000 }), requests: 160,
		gap: 25 * time.Millisecond, prompt: 900, output: 150, noise: 0.05,
	}
	_, c, rep := fitted(t, rc.write(t))
	if missed := rep.Check(WholeBounds); len(missed) > 0 {
		t.Error(missed)
	}
	batch := simengine.Work{DecodeSeqs: 30, ContextTokens: 30_000}
	if got, want := c.Cost.Step(batch), rc.config.Cost.Step(batch); math.Abs(float64(got-want)) > 0.05*float64(want) {
		t.Errorf("a step of 30 sequences takes %v by %+v, want %v within 5 %%", got, c.Cost, want)
	}
}

// Where the number of blocks isn't recorded it is told by the usage, which is a
// whole number of blocks; or else by what the requests held while others waited.
func TestFitCountsTheBlocks(t *testing.T) {
	noBlocks := func(m map[string]any) { delete(m, "kv_cache") }
	base := recording{
		config: preset(t, "llama3.1-8b-h100", func(c *simengine.Config) { c.Blocks = 3000 }), requests: 160,
		gap: 25 * time.Millisecond, prompt: 900, output: 150, meta: noBlocks,
	}
	for name, x := range map[string]struct {
		change    func(*recording)
		tolerance float64
	}{
		"by usage":         {func(*recording) {}, 0},
		"by requests":      {func(rc *recording) { rc.remove = []string{"timeseries.csv"} }, 0.02},
		"in a larger pool": {func(rc *recording) { rc.config.Blocks, rc.requests, rc.gap = 8_000, 250, 5*time.Millisecond }, 0.02},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rc := base
			x.change(&rc)
			run, c, rep := fitted(t, rc.write(t))
			if math.Abs(float64(c.Blocks-rc.config.Blocks)) > x.tolerance*float64(rc.config.Blocks) {
				t.Errorf("%d blocks (%s), want %d within %.0f %%", c.Blocks, run.blocksSource, rc.config.Blocks, 100*x.tolerance)
			}
			if missed := rep.Check(WholeBounds); len(missed) > 0 {
				t.Error(missed)
			}
		})
	}
}

// The way to the engine is measured where all times are on one clock, and said
// to be unknown where they aren't.
func TestFitMeasuresTheRequestOverhead(t *testing.T) {
	rc := recording{
		config:   preset(t, "llama3.1-8b-a100", func(c *simengine.Config) { c.Cost.RequestOverhead = 12 * time.Millisecond }),
		requests: 120, gap: 150 * time.Millisecond, prompt: 700, output: 120, oneClock: true,
	}
	run, c, rep := fitted(t, rc.write(t))
	if got := c.Cost.RequestOverhead; !run.OneClock || got < 12*time.Millisecond || got > 13*time.Millisecond {
		t.Errorf("request overhead is %v, want 12ms", got)
	}
	if missed := rep.Check(Bounds{LatencyMAPE: 0.5, Middle: 1, Tail: 1}); len(missed) > 0 {
		t.Error(missed)
	}
	rc.oneClock = false
	if run, c, _ = fitted(t, rc.write(t)); c.Cost.RequestOverhead != 0 || !strings.Contains(strings.Join(run.Notes, "\n"), "another clock") {
		t.Errorf("request overhead is %v with notes %q, want 0 and a word on the clocks", c.Cost.RequestOverhead, run.Notes)
	}
}

// A recording of any length is fitted in bounded time.
func TestFitSimulatesNoMoreThanItMay(t *testing.T) {
	rc := recording{
		config: preset(t, "llama3.1-8b-h100", func(c *simengine.Config) { c.Blocks = 3000 }), requests: 60,
		gap: 25 * time.Millisecond, prompt: 900, output: 150, noise: 0.03, meta: func(m map[string]any) { delete(m, "kv_cache") },
		remove: []string{"timeseries.csv"},
	}
	run, err := Read(rc.write(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := run.affordable(); got < 50_000 || got > 200_000 {
		t.Errorf("%d simulations of some 10,000 tokens are affordable, want 1e9 tokens in all", got)
	}
	all := 0
	if _, _, err := run.Fit(Options{Progress: func(n int, _ float64) { all = n }}); err != nil {
		t.Fatal(err)
	}
	most := 2*roundsMax + 2*roundsMax*(blocksTries+1) + roundsMax*(len(expertShares)+len(freeShares)+4) + searchMax + terms
	if all == 0 || all > most {
		t.Errorf("%d simulations, want at most %d", all, most)
	}
	for i := range run.Requests {
		run.Requests[i].Output *= 1 << 18
	}
	if got := run.affordable(); got != leastMax {
		t.Errorf("%d simulations of billions of tokens are affordable, want %d", got, leastMax)
	}
}

// Fitted on the first half, judged by the second.
func TestFitHoldsForRequestsItDidNotSee(t *testing.T) {
	rc := recording{
		config: preset(t, "llama3.1-8b-h100", func(c *simengine.Config) { c.Blocks = 3000 }), requests: 200,
		gap: 25 * time.Millisecond, prompt: 900, output: 150, noise: 0.03,
	}
	run, err := Read(rc.write(t))
	if err != nil {
		t.Fatal(err)
	}
	c, tl, err := run.Fit(Options{Judged: func(i int) bool { return i < 100 }})
	if err != nil {
		t.Fatal(err)
	}
	rep := run.Report(c, tl, func(i int) bool { return i >= 100 })
	if missed := rep.Check(HalfBounds); len(missed) > 0 || rep.Judged != 100 {
		t.Errorf("%d judged, missed %v", rep.Judged, missed)
	}
}
