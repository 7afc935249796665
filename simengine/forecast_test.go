package simengine

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A forecast is what becomes of the request if nothing comes after it. Where
// memory is short, blocks that leave are counted roughly; there it may be off,
// but not much and not often.
func TestForecastIsWhatHappens(t *testing.T) {
	for name, blocks := range map[string]int{"room for all": 4000, "short of memory": 260} {
		exact, all, off, total := 0, 0, 0.0, 0.0
		for seed := range uint64(60) {
			rng := rand.New(rand.NewPCG(seed, 1))
			e, err := New(Config{BlockSize: 16, Blocks: blocks, MaxNumBatchedTokens: 512, MaxNumSeqs: 16})
			if err != nil {
				t.Fatal(err)
			}
			run := newArrivals(e, rng)
			run.until(time.Duration(rng.IntN(int(8 * time.Second))))
			asked := run.request()
			want := e.Forecast(run.now, &asked)
			if err := e.Submit(run.now, asked); err != nil {
				t.Fatal(err)
			}
			got := run.first(asked.ID)
			all++
			if got == want.First {
				exact++
			}
			off += (got - want.First).Abs().Seconds()
			total += (got - run.now).Seconds()
		}
		if name == "room for all" && exact != all || off > 0.05*total {
			t.Errorf("%s: %d of %d forecasts are exact, the mean is off by %.1f %%", name, exact, all, 100*off/total)
		}
	}
}

// arrivals sends an engine prompts that share beginnings.
type arrivals struct {
	e    *Engine
	rng  *rand.Rand
	now  time.Duration
	sent uint64
}

func newArrivals(e *Engine, rng *rand.Rand) *arrivals { return &arrivals{e: e, rng: rng} }

func (r *arrivals) request() Request {
	r.sent++
	tokens := 1 + r.rng.IntN(1200)
	family := r.rng.Uint64N(6) << 32
	blocks := make([]uint64, tokens/16)
	for i := range blocks {
		blocks[i] = family | uint64(i)
		if i >= 20 {
			blocks[i] |= r.sent << 8 << 8
		}
	}
	return Request{ID: r.sent, PromptTokens: tokens, Blocks: blocks, OutputTokens: 1 + r.rng.IntN(80)}
}

func (r *arrivals) until(end time.Duration) {
	next := time.Duration(0)
	for {
		next += time.Duration(r.rng.ExpFloat64() * float64(90*time.Millisecond))
		if next > end {
			break
		}
		r.steps(next)
		r.now = next
		if err := r.e.Submit(next, r.request()); err != nil {
			panic(err)
		}
	}
	r.steps(end)
	r.now = end
}

func (r *arrivals) steps(end time.Duration) {
	for at, busy := r.e.Next(); busy && at <= end; at, busy = r.e.Next() {
		r.e.Step(at)
	}
}

// first runs until a request has its first token.
func (r *arrivals) first(id uint64) time.Duration {
	for at, busy := r.e.Next(); busy; at, busy = r.e.Next() {
		for _, o := range r.e.Step(at) {
			if o.ID == id && o.First {
				return at
			}
		}
	}
	return -1
}
