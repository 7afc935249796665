package simengine

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// traffic is a random life of an engine: its configuration, and what arrives and
// leaves when.
type traffic struct {
	config Config
	events []event // by time
}

type event struct {
	at     time.Duration
	submit *Request
	cancel uint64
}

func randomTraffic(random *rand.Rand) traffic {
	tr := traffic{config: Config{
		BlockSize:           1 + random.IntN(20),
		Blocks:              20 + random.IntN(200),
		MaxNumSeqs:          1 + random.IntN(20),
		MaxNumBatchedTokens: 20 + random.IntN(300),
		PriorityScheduling:  random.IntN(3) == 0,
		AsyncScheduling:     random.IntN(2) == 0,
		AdmitByChunk:        random.IntN(4) == 0,
		Cost: Cost{
			Base: time.Millisecond, PrefillToken: 1e-5, DecodeSeq: 1e-5, ContextToken: 1e-7, AttentionTerm: 1e-9,
			PrefillFree: 40 * random.IntN(2), Experts: time.Duration(random.IntN(2)) * time.Millisecond, ExpertShare: 0.1,
			RequestOverhead: time.Duration(random.IntN(3)) * time.Millisecond,
		},
	}}
	if random.IntN(3) == 0 {
		tr.config.LongPrefillTokens = 1 + random.IntN(100)
		tr.config.MaxModelLen = max(100, 100*random.IntN(8))
		tr.config.LongPrefillAlone, tr.config.LongPrefillAdaptive = random.IntN(2) == 0, random.IntN(2) == 0
		tr.config.MaxModelLen = min(tr.config.MaxModelLen, tr.config.KVTokens())
		tr.config.LongPrefillTokens = min(tr.config.LongPrefillTokens, tr.config.MaxModelLen)
	}
	if random.IntN(3) == 0 {
		tr.config.Watermark = random.Float64() / 2
	}
	if random.IntN(3) == 0 {
		tr.config.MaxLoRAs = 1 + random.IntN(3)
	}
	size := tr.config.BlockSize
	var now time.Duration
	for id := range uint64(20 + random.IntN(60)) {
		now += time.Duration(random.ExpFloat64() * float64(3*time.Millisecond))
		length := 2 + random.IntN(tr.config.WithDefaults().MaxModelLen-1)
		p := 1 + random.IntN(length-1)
		whole := chain(random.IntN(4), length/size)
		r := Request{ID: id, PromptTokens: p, Blocks: whole[:p/size], OutputTokens: length - p, OutputBlocks: whole[p/size:]}
		if tr.config.PriorityScheduling {
			r.Priority = random.IntN(3)
		}
		r.SkipPrefixCache = random.IntN(8) == 0
		if random.IntN(2) == 0 {
			r.Adapter = string(rune('a' + random.IntN(5)))
		}
		tr.events = append(tr.events, event{at: now, submit: &r})
		if random.IntN(5) == 0 {
			tr.events = append(tr.events, event{at: now + time.Duration(random.IntN(int(50*time.Millisecond))), cancel: id})
		}
	}
	slices.SortStableFunc(tr.events, func(a, b event) int { return int(a.at - b.at) })
	return tr
}

// life runs the traffic and returns all outputs. The driver hands over what
// happened up to lag after the step that it is about to end.
func (tr traffic) life(t testing.TB, lag time.Duration) ([]Output, Stats) {
	t.Helper()
	e := newEngine(t, tr.config)
	var all []Output
	events, steps := tr.events, 0
	for {
		at, busy := e.Next()
		for len(events) > 0 && (!busy || events[0].at <= at+lag) {
			if ev := events[0]; ev.submit != nil {
				submit(t, e, ev.at, *ev.submit)
			} else {
				e.Cancel(ev.at, ev.cancel)
			}
			events = events[1:]
			at, busy = e.Next()
		}
		if !busy {
			return all, e.Stats()
		}
		all = append(all, e.Step(at)...)
		// The check walks the whole pool; what breaks it stays broken.
		if steps++; lag == 0 && steps%8 == 0 {
			if err := e.invariants(); err != nil {
				t.Fatalf("at %v: %v", at, err)
			}
		}
		if len(all) > 1_000_000 {
			t.Fatal("no end")
		}
	}
}

// checkLife tells what an honest engine can't have done.
func (tr traffic) checkLife(outputs []Output, s Stats) error {
	requests := make(map[uint64]*Request)
	for _, ev := range tr.events {
		if ev.submit != nil {
			requests[ev.submit.ID] = ev.submit
		}
	}
	tokens := make(map[uint64]int)
	var now time.Duration
	var all uint64
	for _, o := range outputs {
		r := requests[o.ID]
		if r == nil {
			return fmt.Errorf("output of request %d, which never came or was over", o.ID)
		}
		tokens[o.ID] += o.Tokens
		all += uint64(o.Tokens)
		switch x := o.Times; {
		case x.At < now:
			return fmt.Errorf("output at %v after one at %v", x.At, now)
		case o.GeneratedTokens != tokens[o.ID]:
			return fmt.Errorf("request %d has %d tokens, its outputs %d", o.ID, o.GeneratedTokens, tokens[o.ID])
		case o.First != (o.Tokens > 0 && x.Previous < 0):
			return fmt.Errorf("request %d: first token is %v after one at %v", o.ID, o.First, x.Previous)
		case o.Tokens > 0 && !(x.Arrived <= x.Queued && x.Queued <= x.Scheduled && x.Scheduled < x.First && x.First <= x.At):
			return fmt.Errorf("request %d: times out of order: %+v", o.ID, x)
		case o.CachedTokens >= o.PromptTokens || o.CachedTokens%tr.config.BlockSize != 0:
			return fmt.Errorf("request %d: %d of %d tokens cached", o.ID, o.CachedTokens, o.PromptTokens)
		case o.Finished && o.Reason != ReasonAbort && o.GeneratedTokens != r.OutputTokens:
			return fmt.Errorf("request %d ended with %d of %d tokens", o.ID, o.GeneratedTokens, r.OutputTokens)
		}
		now = o.Times.At
		if o.Finished {
			delete(requests, o.ID)
		}
	}
	if len(requests) > 0 {
		return fmt.Errorf("%d requests never ended", len(requests))
	}
	if s.Running != 0 || s.Waiting != 0 || s.Deferred != 0 || s.KVUsage != 0 || s.GenerationTokens != all || s.FinishedStop+s.Aborted != uint64(len(tokens)) {
		return fmt.Errorf("%d requests and %d tokens left %+v", len(tokens), all, s)
	}
	return nil
}

// Under any traffic the engine keeps its books, ends every request with the
// tokens it asked for, and does the same again; and a driver that runs late
// changes nothing.
func TestRandomTraffic(t *testing.T) {
	preemptions, hits := uint64(0), uint64(0)
	for seed := range uint64(60) {
		tr := randomTraffic(rand.New(rand.NewPCG(seed, 2)))
		outputs, stats := tr.life(t, 0)
		if err := tr.checkLife(outputs, stats); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		late, lateStats := tr.life(t, 7*time.Millisecond)
		if !reflect.DeepEqual(outputs, late) || stats != lateStats {
			t.Fatalf("seed %d: a late driver saw another life", seed)
		}
		preemptions += stats.Preemptions
		hits += stats.PrefixHits
	}
	if preemptions == 0 || hits == 0 {
		t.Errorf("%d preemptions and %d hits: the traffic doesn't try the engine", preemptions, hits)
	}
}

func FuzzTraffic(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		tr := randomTraffic(rand.New(rand.NewPCG(a, b)))
		outputs, stats := tr.life(t, 0)
		if err := tr.checkLife(outputs, stats); err != nil {
			t.Fatal(err)
		}
	})
}

// First come, first scheduled: whatever the sizes.
func TestRequestsEnterInOrderOfArrival(t *testing.T) {
	for seed := range uint64(15) {
		tr := randomTraffic(rand.New(rand.NewPCG(seed, 3)))
		tr.config.MaxLoRAs = 0 // who lacks an adapter's slot is passed by
		if tr.config.PriorityScheduling {
			tr.config.PriorityScheduling = false
			for _, ev := range tr.events {
				if ev.submit != nil {
					ev.submit.Priority = 0
				}
			}
		}
		outputs, _ := tr.life(t, 0)
		scheduled := make(map[uint64]time.Duration)
		for _, o := range outputs {
			if o.Times.Scheduled >= 0 {
				scheduled[o.ID] = o.Times.Scheduled
			}
		}
		last := time.Duration(0)
		for id := range uint64(len(tr.events)) {
			at, ok := scheduled[id]
			if ok && at < last {
				t.Fatalf("seed %d: request %d entered at %v, one before it at %v", seed, id, at, last)
			}
			last = max(last, at)
		}
	}
}
