package simengine

import (
	"sort"
	"time"
)

// Forecast is what would become of a request that nothing comes after.
type Forecast struct {
	First  time.Duration // when its first token would come
	Cached int           // tokens of its prompt that the prefix cache would supply
}

// Cached returns how many of the leading blocks the prefix cache has now.
func (e *Engine) Cached(blocks []uint64) int {
	hits, _ := e.hits(blocks)
	return hits
}

// hits counts the leading blocks that are in the cache, and those of them that
// no request holds.
func (e *Engine) hits(blocks []uint64) (hits, unheld int) {
	e.forecast.found, unheld = e.match(blocks, nil, e.forecast.found[:0])
	return len(e.forecast.found), unheld
}

// Forecast tells what would become of r if it were submitted at now and nothing
// came after it. It changes nothing that can be seen.
//
// Steps, budgets, chunks, the queue and the room for KV blocks are as Step has
// them. Three things are simplified: nothing that is cached is evicted until r
// is admitted, nothing is preempted, and blocks that requests share are given
// back with the first of them or not at all. Priorities, asynchronous scheduling,
// sleep, adapters' slots, the watermark and bounds of a prefill's chunks are not
// looked at.
func (e *Engine) Forecast(now time.Duration, r *Request) Forecast {
	now = max(now, e.clock)
	f := &e.forecast
	f.e, f.free = e, e.pool.Free()
	f.running, f.waiting, f.parted = f.running[:0], f.waiting[:0], f.parted[:0]
	f.fold()
	for _, s := range f.others {
		f.running = append(f.running, ghost{
			known: s.known, computed: s.computed, chunk: s.chunk, left: s.limit - s.generated, held: len(s.blocks), of: s,
		})
	}
	return e.forecastOf(now, r)
}

// forecastOf is the forecast of r behind the batch, which is known.
func (e *Engine) forecastOf(now time.Duration, r *Request) Forecast {
	f := &e.forecast
	for _, s := range e.waiting.all() {
		f.wait(s)
	}
	order := e.order
	for _, s := range e.arriving {
		if s.times.Arrived > now { // known beforehand, and so behind r
			order = s.order
			break
		}
		f.wait(s)
	}
	hits, free := e.hitsBehind(r, order)
	f.waiting = append(f.waiting, ghost{
		known: r.PromptTokens, left: max(r.OutputTokens, 1), hits: hits, unheld: free,
		queued: now + e.cfg.Cost.RequestOverhead, asked: true,
	})
	forecast := Forecast{Cached: hits * e.cfg.BlockSize}
	forecast.First = f.run(now)
	return forecast
}

// hitsBehind counts the blocks of r that are cached, or will be by those that
// came before the order-th: these have their turn first. unheld are those of
// them that no request holds.
func (e *Engine) hitsBehind(r *Request, order uint64) (hits, unheld int) {
	if e.cfg.DisablePrefixCaching || r.SkipPrefixCache {
		return 0, 0
	}
	most := min((r.PromptTokens-1)/e.cfg.BlockSize, len(r.Blocks))
	hits, unheld = e.hits(r.Blocks[:most])
	behind := func(s *sequence) {
		if s.order < order {
			hits = common(r.Blocks[:most], s.Blocks, hits)
		}
	}
	for _, s := range e.forecast.others {
		if s.generated == 0 {
			behind(s)
		}
	}
	for _, s := range e.waiting.all() {
		behind(s)
	}
	for _, s := range e.arriving {
		behind(s)
	}
	return hits, unheld
}

// common is the length of what two chains share, at least the given. Chained
// hashes that are equal have equal ones before them.
func common(a, b []uint64, least int) int {
	n := min(len(a), len(b))
	if least >= n || a[least] != b[least] {
		return least
	}
	return least + 1 + sort.Search(n-least-1, func(i int) bool { return a[least+1+i] != b[least+1+i] })
}
