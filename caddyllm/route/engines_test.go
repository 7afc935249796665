package route

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// engine is a stand-in for an inference engine: requests wait for one of its
// slots, then for 50 ms and 1 ms per 16 uncached tokens, then decode.
type engine struct {
	slots    int
	stuck    bool // takes requests and computes nothing
	slowness int  // times as long for a prefill
	cached   map[uint64]bool
	waiting  []*job
	running  []*job
	prompts  float64 // counters of its page
	outputs  float64
	most     int // requests at once
}

type job struct {
	q      *Request
	ticket Ticket
	sent   time.Time
	first  time.Time
	end    time.Time
	told   bool
	decode time.Duration
	done   func()
}

// farm is a desk with engines behind it. Time goes in ticks of 10 ms.
type farm struct {
	*desk
	engines []*engine
	quiet   bool // no scrapes
	ticks   int
}

const tick = 10 * time.Millisecond

func newFarm(t *testing.T, n int) *farm {
	t.Helper()
	f := &farm{desk: newDesk(t, n)}
	for range n {
		f.engines = append(f.engines, newEngine())
	}
	return f
}

func newEngine() *engine { return &engine{slots: 4, cached: make(map[uint64]bool)} }

func (f *farm) send(q *Request, decode time.Duration, done func()) int {
	f.t.Helper()
	c := f.pick(q)
	e := f.engines[c.Index]
	e.waiting = append(e.waiting, &job{q: q, ticket: c.Ticket, sent: f.now, decode: decode, done: done})
	e.most = max(e.most, len(e.waiting)+len(e.running))
	return c.Index
}

func (f *farm) step() {
	f.now = f.now.Add(tick)
	f.ticks++
	for i, e := range f.engines {
		if !e.stuck {
			f.run(e)
		}
		if f.ticks%100 == 0 && !f.quiet {
			f.r.Scraped(f.now, f.targets[i].ID, &Load{
				Waiting: Known(float64(len(e.waiting))), Running: Known(float64(len(e.running))),
				PromptTokens: Known(e.prompts), OutputTokens: Known(e.outputs),
			})
		}
	}
}

func (f *farm) run(e *engine) {
	kept := e.running[:0]
	for _, j := range e.running {
		if !j.told && !j.first.After(f.now) {
			j.told = true
			f.r.FirstByte(f.now, j.ticket)
			e.prompts += float64(j.q.Bytes) / 4
		}
		if j.told {
			e.outputs++
		}
		if j.end.After(f.now) {
			kept = append(kept, j)
			continue
		}
		f.r.Done(f.now, j.ticket, Completed, nil)
		if j.done != nil {
			j.done()
		}
	}
	e.running = kept
	for len(e.waiting) > 0 && len(e.running) < e.slots {
		j := e.waiting[0]
		e.waiting = e.waiting[1:]
		uncached := 0
		for _, h := range j.q.Chain {
			if !e.cached[h] {
				uncached += 64
				e.cached[h] = true
			}
		}
		j.first = f.now.Add(time.Duration(max(e.slowness, 1)) * (50*time.Millisecond + time.Duration(uncached/16)*time.Millisecond))
		j.end = j.first.Add(j.decode)
		e.running = append(e.running, j)
	}
}

// giveUp cancels what has waited too long for its first token.
func (f *farm) giveUp(patience time.Duration) {
	for _, e := range f.engines {
		drop := func(j *job) bool {
			if j.told || f.now.Sub(j.sent) < patience {
				return false
			}
			f.r.Done(f.now, j.ticket, Cancelled, nil)
			return true
		}
		e.waiting = slices.DeleteFunc(e.waiting, drop)
		e.running = slices.DeleteFunc(e.running, drop)
	}
}

// FC-33 under load: forty of two hundred users at a time, who share 8 KiB and
// have 2 KiB of their own, keep all slots of four engines busy, and come back to
// what holds their own.
func TestFC33SharedSystemPromptKeepsAllBusy(t *testing.T) {
	f := newFarm(t, 4)
	served := 0
	counts := make([]int, 4)
	turns, last := make([]int, 200), make([]int, 200)
	next, back := 0, 0
	var send func()
	send = func() {
		user := next % 200
		next++
		turns[user]++
		on := f.send(prompt("system", 32, user, 8+turns[user]), 900*time.Millisecond, func() { served++; send() })
		counts[on]++
		if turns[user] > 1 && on == last[user] {
			back++
		}
		last[user] = on
	}
	for range 40 {
		send()
	}
	for range 6000 {
		f.step()
	}
	// A slot serves at most one request per 0.95 s: 16 slots, 60 s.
	if served < 900 {
		t.Errorf("%d requests are served in a minute, want at least 900 of at most 1,010", served)
	}
	if again := next - 200; back*10 < again*8 {
		t.Errorf("%d of %d later turns are where the user's last was, want 80 %%", back, again)
	}
	if total := counts[0] + counts[1] + counts[2] + counts[3]; slices.Max(counts)*10 > total*4 {
		t.Errorf("of %d requests the upstreams get %v, want at most 40 %% each", total, counts)
	}
}

// FC-43: days of pods that come and go leave no trace.
func TestFC43SkewAfterChurn(t *testing.T) {
	d := newDesk(t, 10)
	d.now = time.Unix(1_000_000, 0)
	for cycle := range 500 {
		d.targets = append(d.targets[1:], Target{ID: fmt.Sprintf("pod%d:8000", cycle)})
		for i := range 20 {
			d.serve(prompt("churn", 1, cycle, 1, i, 2))
		}
		d.now = d.now.Add(5 * time.Minute)
	}
	counts := make([]int, 10)
	for i := range 2000 {
		counts[d.serve(prompt(i, 3)).Index]++
	}
	if slices.Min(counts) < 130 || slices.Max(counts) > 270 {
		t.Errorf("2,000 cold prompts go %v, want 130 to 270 each", counts)
	}
	d.now = d.now.Add(forgetAfter + time.Minute)
	d.serve(prompt("x", 2))
	if got := len(d.r.Snapshot(d.now)); got != 10 {
		t.Errorf("%d upstreams are remembered, want the 10 that are left", got)
	}
}

// FC-44: a new upstream takes its share of conversations that are warm
// elsewhere, and isn't run over.
func TestFC44NewUpstream(t *testing.T) {
	f := newFarm(t, 2)
	turns := make([]int, 20)
	var send func(user int)
	counts := make([]int, 3)
	send = func(user int) {
		turns[user]++
		counts[f.send(prompt(user, 8+turns[user]), 900*time.Millisecond, func() { send(user) })]++
	}
	for user := range turns {
		send(user)
	}
	for range 2000 {
		f.step()
	}
	f.targets = append(f.targets, Target{ID: "U3:8000"})
	f.engines = append(f.engines, newEngine())
	clear(counts)
	for range 1000 {
		f.step()
	}
	total := counts[0] + counts[1] + counts[2]
	if counts[2]*5 < total {
		t.Errorf("within 10 s the new upstream gets %d of %d requests, want 20 %%", counts[2], total)
	}
	if e := f.engines[2]; e.most > e.slots+4 {
		t.Errorf("the new upstream had %d requests at once, want at most %d", e.most, e.slots+4)
	}
	// 20 users for 12 slots.
	for i, e := range f.engines {
		if len(e.waiting) > 4 {
			t.Errorf("U%d has %d waiting after 10 s", i+1, len(e.waiting))
		}
	}
}

// FC-86: an engine that answers scrapes and computes nothing gets probes only,
// and is itself again once its counters move.
func TestFC86HealthyButFrozenEngine(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		f := newFarm(t, 3)
		f.quiet = quiet
		turns := make([]int, 30)
		send := func(i int) int {
			if i%2 == 0 { // a new conversation
				return f.send(prompt("new", 1, i, 20), 300*time.Millisecond, nil)
			}
			user := i / 2 % len(turns)
			turns[user]++
			return f.send(prompt(user, 20+turns[user]), 300*time.Millisecond, nil)
		}
		n := 0
		run := func(seconds int) int {
			first := 0
			for s := range seconds * 100 {
				if s%50 == 0 {
					if send(n) == 0 {
						first++
					}
					n++
				}
				f.step()
				f.giveUp(30 * time.Second)
			}
			return first
		}
		if got := run(60); got < 20 {
			t.Fatalf("healthy: the first upstream gets %d of 120 requests", got)
		}
		f.engines[0].stuck = true
		run(15) // to notice
		if got := run(100); got >= 30 {
			t.Errorf("scrapes %v: while stuck it gets %d requests in 100 s, want fewer than 3 in 10 s", !quiet, got)
		}
		if got := f.r.Snapshot(f.now)[0].State; got != StateDoubtful {
			t.Errorf("scrapes %v: while stuck it is %s", !quiet, got)
		}
		f.engines[0].stuck = false
		run(10)
		if got := run(60); got < 15 {
			t.Errorf("scrapes %v: once it computes again it gets %d of 120 requests", !quiet, got)
		}
	}
}

// What is idle is never suspected, however long its page stands still.
func TestIdleIsNotStalled(t *testing.T) {
	f := newFarm(t, 2)
	for range 6000 {
		f.step()
	}
	for _, u := range f.r.Snapshot(f.now) {
		if u.State != StateFresh {
			t.Errorf("%s is %s after an idle minute, want fresh", u.ID, u.State)
		}
	}
}

// Explain tells what Pick compares, and changes nothing.
func TestExplain(t *testing.T) {
	d := newDesk(t, 3)
	d.serve(prompt("a", 20))
	open := d.pick(prompt("b", 50))
	d.targets = append(d.targets, Target{ID: "new:8000"})
	before := d.r.Snapshot(d.now)
	q := prompt("a", 24)
	terms := d.r.Explain(d.now, q, d.targets)
	for i, c := range terms {
		if sum := c.Queue + c.Prefill + c.Stall - c.Copy + c.Memory; sum < c.Cost*0.999 || sum > c.Cost*1.001 {
			t.Errorf("%s: the terms' sum is %v, the cost %v", c.ID, sum, c.Cost)
		}
		if busy := i == open.Index; (c.Queue > 0) != busy {
			t.Errorf("%s: queue %v s", c.ID, c.Queue)
		}
	}
	if !slices.Equal(before, d.r.Snapshot(d.now)) {
		t.Error("Explain changed what is known")
	}
	c := d.pick(q)
	if least := slices.MinFunc(terms, func(a, b Terms) int {
		if a.Cost < b.Cost {
			return -1
		}
		return 1
	}); d.targets[c.Index].ID != least.ID || c.MatchedBlocks != least.MatchedBlocks {
		t.Errorf("Pick chooses %s, Explain prefers %s", d.targets[c.Index].ID, least.ID)
	}
}
