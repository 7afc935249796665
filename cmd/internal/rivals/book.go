package rivals

import "time"

// book is what a proxy knows of its own requests in flight.
type book struct {
	flights map[uint64]*flight
	up      []load
}

// load is what a proxy has sent to one upstream.
type load struct {
	inFlight int
	queued   int     // requests without a first token
	pending  float64 // their tokens that were believed not to be cached
	tokens   float64 // prompt tokens of all in flight
	page     Page    // the last that was read
	scraped  bool
}

type flight struct {
	up      int
	work    float64
	tokens  float64
	sent    time.Duration
	decodes bool
	chain   []int32
}

func newBook(env Env) book {
	return book{flights: make(map[uint64]*flight), up: make([]load, env.Upstreams)}
}

// send notes a request of so many tokens, work of them not cached.
func (b *book) send(now time.Duration, q *Request, up int, tokens, work float64) *flight {
	f := &flight{up: up, work: work, tokens: tokens, sent: now}
	b.flights[q.ID] = f
	l := &b.up[up]
	l.inFlight++
	l.queued++
	l.pending += work
	l.tokens += tokens
	return f
}

func (b *book) FirstToken(_ time.Duration, id uint64) { b.first(id) }

func (b *book) first(id uint64) *flight {
	f := b.flights[id]
	if f == nil || f.decodes {
		return nil
	}
	f.decodes = true
	l := &b.up[f.up]
	l.queued--
	if l.pending -= f.work; l.queued == 0 {
		l.pending = 0 // no drift
	}
	return f
}

func (b *book) End(_ time.Duration, id uint64, _ Outcome, _ *Usage) { b.end(id) }

func (b *book) end(id uint64) *flight {
	b.first(id)
	f := b.flights[id]
	if f == nil {
		return nil
	}
	delete(b.flights, id)
	l := &b.up[f.up]
	l.inFlight--
	if l.tokens -= f.tokens; l.inFlight == 0 {
		l.tokens = 0
	}
	return f
}

func (b *book) Scraped(_ time.Duration, upstream int, page *Page) {
	if page != nil {
		b.up[upstream].page, b.up[upstream].scraped = *page, true
	}
}

// least returns the place whose score is smallest; ties fall by chance among
// all of them. Targets that were tried come last.
func least(targets []Target, r *chance, score func(up int) float64) int {
	best, ties := -1, 0
	var low float64
	for i, t := range targets {
		s := score(t.Upstream)
		switch {
		case best >= 0 && t.Tried != targets[best].Tried:
			if t.Tried {
				continue
			}
		case best >= 0 && s > low:
			continue
		case best >= 0 && s == low:
			if ties++; r.below(ties) != 0 {
				continue
			}
			best = i
			continue
		}
		best, low, ties = i, s, 1
	}
	return best
}

// chance is a small deterministic generator (SplitMix64: Steele, Lea, Flood
// 2014).
type chance struct{ state uint64 }

func (c *chance) next() uint64 {
	c.state += 0x9e3779b97f4a7c15
	return mix(c.state)
}

func (c *chance) below(n int) int { return int(c.next() % uint64(n)) }

func (c *chance) unit() float64 { return float64(c.next()>>11) / (1 << 53) }

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
