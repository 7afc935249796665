package simengine

import (
	"math/rand/v2"
	"slices"
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

// What is known to arrive later comes behind the request that is asked about.
func TestForecastIsNotHeldUpByWhatArrivesLater(t *testing.T) {
	e := newEngine(t, Config{})
	submit(t, e, 0, prompt(1, 1, 5000, 100))
	e.Step(0)
	asked := prompt(9, 9, 3000, 10)
	want := e.Forecast(time.Millisecond, &asked)
	submit(t, e, time.Second, prompt(2, 9, 5000, 100), prompt(3, 3, 5000, 100))
	if got := e.Forecast(time.Millisecond, &asked); got != want {
		t.Errorf("Forecast = %+v with later arrivals, %+v without", got, want)
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

// A forecast is the same whether the engine was stepped or advanced to where it
// is asked, and asking changes nothing.
func TestForecastOfAnAdvancedEngine(t *testing.T) {
	stepped, advanced := newEngine(t, Config{Blocks: 400, Cost: costH100x8B}), newEngine(t, Config{Blocks: 400, Cost: costH100x8B})
	for _, e := range []*Engine{stepped, advanced} {
		for i := range uint64(12) {
			r := prompt(i, int(i%3), 200+20*int(i), 150)
			r.OutputBlocks = chain(100+int(i), 10)
			submit(t, e, time.Duration(i)*20*time.Millisecond, r)
		}
	}
	var told []Output
	for now := time.Duration(0); now < 3*time.Second; now += 37 * time.Millisecond {
		for at, busy := stepped.Next(); busy && at <= now; at, busy = stepped.Next() {
			stepped.Step(at)
		}
		for out := advanced.Advance(now); len(out) > 0; out = advanced.Advance(now) {
			told = append(told, out...)
		}
		r := prompt(99, int(now/time.Millisecond)%5, 333, 10)
		got, want := advanced.Forecast(now, &r), stepped.Forecast(now, &r)
		if got != want {
			t.Errorf("Forecast at %v = %+v, stepped %+v", now, got, want)
		}
	}
	if advanced.Stats() != stepped.Stats() || len(told) != 24 {
		t.Errorf("after %d outputs %+v, stepped %+v", len(told), advanced.Stats(), stepped.Stats())
	}
}

// byGhosts is a Forecast in which each sequence is a ghost, folded or not.
func (e *Engine) byGhosts(now time.Duration, r *Request) Forecast {
	f := &e.forecast
	f.e, f.free = e, e.pool.Free()
	f.running, f.waiting, f.parted = f.running[:0], f.waiting[:0], f.parted[:0]
	f.folded, f.others = folded{next: forever}, e.running
	for _, s := range e.running {
		g := ghost{known: s.known, computed: s.computed, chunk: s.chunk, left: s.limit - s.generated, held: len(s.blocks), of: s}
		if s.folded { // its counts lag behind, and some of its blocks are lent
			steps := int(e.done - s.since)
			g.known += steps
			g.computed += steps
			g.left -= steps
			g.chunk, g.held = 1, blocksFor(g.computed+1, e.cfg.BlockSize)
		}
		f.running = append(f.running, g)
	}
	defer func() { f.others = nil }()
	return e.forecastOf(max(now, e.clock), r)
}

// What is summed up of a steady batch comes to what each sequence by itself would.
func TestForecastOfASteadyBatchIsThatOfItsSequences(t *testing.T) {
	asked, steady, waited := 0, 0, 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 11))
		tr := randomTraffic(random)
		e := newEngine(t, tr.config)
		for i, ev := range tr.events {
			tr.hand(t, e, ev)
			if i+1 < len(tr.events) && random.IntN(2) == 0 {
				until := ev.at + time.Duration(random.Int64N(int64(tr.events[i+1].at-ev.at)+1))
				for len(e.Advance(until)) > 0 {
				}
				r := prompt(1<<40, random.IntN(8), 1+random.IntN(600), 1+random.IntN(50))
				asked++
				if e.steady.on && e.steady.decoding > 0 {
					steady++
				}
				anew := func() {
					for _, s := range slices.Concat(e.waiting.all(), e.arriving) {
						s.expectedKnown = false
					}
				}
				anew()
				got := e.Forecast(until, &r)
				anew()
				want := e.byGhosts(until, &r)
				if got != want {
					t.Fatalf("seed %d: Forecast at %v = %+v, by ghosts %+v", seed, until, got, want)
				}
				if want.First > e.end+time.Millisecond {
					waited++
				}
			}
		}
	}
	if steady < asked/10 || waited < asked/10 {
		t.Errorf("of %d forecasts %d were of steady batches, %d of more than a step", asked, steady, waited)
	}
}
