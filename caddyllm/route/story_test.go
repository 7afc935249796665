package route

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// desk is a Router with upstreams, on a clock of its own.
type desk struct {
	t       *testing.T
	r       *Router
	now     time.Time
	targets []Target
}

func newDesk(t *testing.T, n int) *desk {
	t.Helper()
	d := &desk{t: t, r: New(Options{Seed: 1}), now: time.Unix(1_000_000, 0)}
	for i := range n {
		d.targets = append(d.targets, Target{ID: fmt.Sprintf("U%d:8000", i+1)})
	}
	return d
}

// prompt is a streamed request whose chain goes through stretches, each given
// by a seed and a number of blocks.
func prompt(stretches ...any) *Request {
	q := &Request{Stream: true}
	h := uint64(1)
	for i := 0; i < len(stretches); i += 2 {
		for b := range stretches[i+1].(int) {
			for _, c := range fmt.Sprint(stretches[i], b) {
				h = mix(h ^ uint64(c))
			}
			q.Chain = append(q.Chain, h)
		}
	}
	q.Bytes = len(q.Chain) * defaultBlockBytes
	return q
}

func (d *desk) pick(q *Request) Choice {
	d.t.Helper()
	c, ok := d.r.Pick(d.now, q, d.targets)
	if !ok {
		d.t.Fatal("Pick found nothing among targets")
	}
	return c
}

// serve sends a request and has it answered, at 10,000 tokens a second.
func (d *desk) serve(q *Request) Choice {
	d.t.Helper()
	c := d.pick(q)
	d.now = d.now.Add(time.Duration(float64(requestWork+c.PromptTokens-c.MatchedTokens) / 1e4 * float64(time.Second)))
	d.r.FirstByte(d.now, c.Ticket)
	d.now = d.now.Add(100 * time.Millisecond)
	d.r.Done(d.now, c.Ticket, Completed, nil)
	for d.r.Unsettled() {
		d.r.Settle()
	}
	return c
}

func (d *desk) scrape(i int, waiting, running float64) {
	d.r.Scraped(d.now, d.targets[i].ID, &Load{Waiting: Known(waiting), Running: Known(running)})
}

func (d *desk) idle() {
	d.t.Helper()
	for _, u := range d.r.Snapshot(d.now) {
		if u.Prefill != 0 || u.Decode != 0 {
			d.t.Errorf("%s has %d in prefill and %d in decode, want none", u.ID, u.Prefill, u.Decode)
		}
	}
	for _, t := range d.r.popular.counts {
		if t.waiting() != 0 || d.r.popular.waiting != 0 {
			d.t.Fatalf("%d requests are counted as waiting, want none", d.r.popular.waiting)
		}
	}
	for _, u := range d.r.upstreams {
		if u != nil && (u.queued != 0 || u.room != 0) {
			d.t.Errorf("%s has %v of work and %v of room reserved, want none", u.id, u.queued, u.room)
		}
	}
}

// A conversation goes where its last turn went.
func TestTurnsFollowTheirPrefix(t *testing.T) {
	d := newDesk(t, 8)
	for c := range 20 {
		home := d.serve(prompt(c, 10))
		if home.Reason != ReasonCold {
			t.Errorf("conversation %d begins with reason %s, want cold", c, home.Reason)
		}
		for turn := 1; turn < 6; turn++ {
			got := d.serve(prompt(c, 10+4*turn))
			if got.Index != home.Index || got.Reason != ReasonPrefix || got.MatchedBlocks != 6+4*turn {
				t.Errorf("conversation %d, turn %d: on %d for %s with %d blocks, want %d for prefix with %d",
					c, turn, got.Index, got.Reason, got.MatchedBlocks, home.Index, 6+4*turn)
			}
		}
	}
	d.idle()
}

func TestFC31OnlyATruePrefixCounts(t *testing.T) {
	d := newDesk(t, 2)
	onX := d.serve(prompt("x", 7))
	busy := d.pick(prompt("x", 7, "long", 20))
	onY := d.pick(prompt("y", 7))
	if onY.Index == busy.Index {
		t.Fatal("Y goes to the upstream that is busy with a long prompt")
	}
	for _, c := range []Choice{busy, onY} {
		d.r.Done(d.now, c.Ticket, Completed, nil)
	}
	for i := range 20 {
		if got := d.serve(prompt("y", 7, "x", 7, i, 1)); got.Index != onY.Index {
			t.Errorf("Y+X %d goes to %d, want %d", i, got.Index, onY.Index)
		}
		if got := d.serve(prompt("x", 7, i, 1)); got.Index != onX.Index {
			t.Errorf("X %d goes to %d, want %d", i, got.Index, onX.Index)
		}
	}
	if got := d.serve(prompt("z", 1, "x", 7)); got.MatchedBlocks != 0 {
		t.Errorf("X behind another beginning matches %d blocks, want 0", got.MatchedBlocks)
	}
}

// FC-33: a system prompt that all share doesn't gather all on one upstream.
func TestFC33EveryoneSharesOneSystemPrompt(t *testing.T) {
	d := newDesk(t, 4)
	counts := make([]int, 4)
	type running struct {
		c   Choice
		end time.Time
	}
	var open []running
	for i := range 400 {
		c := d.pick(prompt("system", 16, i, 12))
		counts[c.Index]++
		d.r.FirstByte(d.now.Add(50*time.Millisecond), c.Ticket)
		open = append(open, running{c, d.now.Add(2 * time.Second)})
		d.now = d.now.Add(60 * time.Millisecond)
		for len(open) > 0 && !open[0].end.After(d.now) {
			d.r.Done(d.now, open[0].c.Ticket, Completed, nil)
			open = open[1:]
		}
	}
	if least, most := slices.Min(counts), slices.Max(counts); least < 60 || most > 160 {
		t.Errorf("400 prompts with one beginning go %v, want 60 to 160 each", counts)
	}
}

func TestFC35ColdRequestsOnAnIdlePool(t *testing.T) {
	for name, cold := range map[string]func(i int) *Request{
		"prompts of several blocks": func(i int) *Request { return prompt(i, 3) },
		"prompts under a block":     func(int) *Request { return &Request{Bytes: 100, Stream: true} },
	} {
		d := newDesk(t, 4)
		counts := make([]int, 4)
		for i := range 400 {
			counts[d.serve(cold(i)).Index]++
		}
		if slices.Min(counts) < 57 || slices.Max(counts) > 143 {
			t.Errorf("%s: 400 go %v, want 57 to 143 each", name, counts)
		}
	}
}

func TestFC37BurstBetweenTwoScrapes(t *testing.T) {
	d := newDesk(t, 4)
	for i := range 4 {
		d.scrape(i, 0, 0)
	}
	counts := make([]int, 4)
	var open []Choice
	for i := range 40 {
		c := d.pick(prompt(i, 20))
		counts[c.Index]++
		open = append(open, c)
		d.now = d.now.Add(500 * time.Microsecond)
	}
	if slices.Min(counts) < 6 || slices.Max(counts) > 14 {
		t.Errorf("a cold burst goes %v, want 6 to 14 each", counts)
	}
	for _, c := range open {
		d.r.Done(d.now, c.Ticket, Completed, nil)
	}
	d.idle()

	home := d.serve(prompt("warm", 40))
	counts = make([]int, 4)
	for i := range 40 {
		counts[d.pick(prompt("warm", 40, i, 2)).Index]++
	}
	if counts[home.Index] == 40 || counts[home.Index] != slices.Max(counts) {
		t.Errorf("a warm burst goes %v with the prefix on %d, want most there and not all", counts, home.Index)
	}
}

// FC-39: a page that claims work for ever, and never moves, is not believed:
// its engine is idle and fast, holds prefixes, and is used.
func TestFC39GaugeFrozenAtAHighValue(t *testing.T) {
	d := newDesk(t, 3)
	for i := range 10 {
		d.serveAt(0, prompt(fmt.Sprint("warm", i), 20))
	}
	frozen := &Load{Waiting: Known(15), Running: Known(106), KVUsage: Known(0.99), PromptTokens: Known(1e6), OutputTokens: Known(1e5)}
	moving := 0.0
	during := func(span time.Duration, first *Load) (cold, all, warm int) {
		end := d.now.Add(span)
		for i := 0; d.now.Before(end); i++ {
			if i%5 == 0 { // each second
				d.r.Scraped(d.now, d.targets[0].ID, first)
				for u := range 2 {
					moving += 100
					d.r.Scraped(d.now, d.targets[u+1].ID, &Load{Waiting: Known(0), Running: Known(0), PromptTokens: Known(moving)})
				}
			}
			next := d.now.Add(200 * time.Millisecond)
			if i%3 == 0 {
				if d.serve(prompt(fmt.Sprint("warm", i/3%10), 20, i, 2)).Index == 0 {
					warm++
				}
			} else {
				if d.serve(prompt(fmt.Sprint("cold", d.now), 4)).Index == 0 {
					cold++
				}
				all++
			}
			if d.now.Before(next) {
				d.now = next
			}
		}
		return cold, all, warm
	}
	during(time.Minute, frozen) // it was full at first; what it held may have moved
	cold, _, warm := during(time.Minute, frozen)
	if cold+warm < 3 {
		t.Errorf("in a minute the frozen upstream gets %d of 300 prompts: it is lost for good", cold+warm)
	}
	// Once the page has moved for two scrapes, the share is as ever.
	moved := &Load{Waiting: Known(0), Running: Known(0), PromptTokens: Known(1e6 + 1), OutputTokens: Known(1e5)}
	during(2*time.Second, moved)
	if cold, all, _ := during(30*time.Second, moved); cold*4 < all || cold*2 > all {
		t.Errorf("after two scrapes of a page that moved it gets %d of %d cold prompts, want a third", cold, all)
	}
}

// FC-59: an upstream of unknown load is judged by what this proxy has there.
func TestFC59UnknownLoadIsNotIdle(t *testing.T) {
	d := newDesk(t, 3)
	counts := make([]int, 3)
	for i := range 90 {
		d.r.Scraped(d.now, d.targets[0].ID, &Load{}) // a page of something else
		d.scrape(1, 0, 0)
		d.scrape(2, 0, 0)
		counts[d.pick(prompt(i, 8)).Index]++
	}
	if slices.Min(counts) < 20 || slices.Max(counts) > 40 {
		t.Errorf("90 open requests go %v, want about 30 each", counts)
	}
	if d.r.Snapshot(d.now)[0].Fresh {
		t.Error("a page without an engine's names counts as fresh")
	}
	// And the queue of others is seen where a page tells of it.
	d = newDesk(t, 2)
	for range 2 {
		d.scrape(0, 10, 4)
		d.scrape(1, 0, 0)
	}
	for i := range 10 {
		if got := d.serve(prompt(i, 4)); got.Index != 1 {
			t.Errorf("prompt %d goes to the upstream with 10 waiting", i)
		}
	}
}

// FC-77: an upstream that this request was sent to comes last, and one that
// failed is left alone for a while, then probed.
func TestFC77FailedUpstreams(t *testing.T) {
	d := newDesk(t, 2)
	home := d.serve(prompt("c", 10))
	c := d.pick(prompt("c", 12))
	d.targets[home.Index].Tried = true
	d.r.Done(d.now, c.Ticket, Failed, nil)
	retry := d.pick(prompt("c", 12))
	if retry.Index == home.Index || retry.Reason != ReasonRetry {
		t.Fatalf("the retry goes to %d for %s", retry.Index, retry.Reason)
	}
	d.r.Done(d.now, retry.Ticket, Completed, nil)
	d.targets[home.Index].Tried = false

	d.now = d.now.Add(100 * time.Millisecond)
	if got := d.serve(prompt("d", 1)); got.Index == home.Index {
		t.Error("a fresh failure attracts the next prompt")
	}
	// Once the suspension is over, a single request probes.
	d.now = d.now.Add(time.Second)
	var probes []Choice
	for i := range 40 {
		if c := d.pick(prompt(i, 4)); c.Index == home.Index {
			probes = append(probes, c)
		}
	}
	if len(probes) != 1 || probes[0].Reason != ReasonProbe {
		t.Fatalf("%d requests went to the doubtful upstream, want one probe", len(probes))
	}
	d.r.FirstByte(d.now, probes[0].Ticket)
	d.r.Done(d.now, probes[0].Ticket, Completed, nil)
	if got := d.r.Snapshot(d.now)[home.Index]; got.Failures != 0 {
		t.Errorf("after a good answer %d failures are remembered", got.Failures)
	}
	// Where all were tried, one is chosen still.
	for i := range d.targets {
		d.targets[i].Tried = true
	}
	d.pick(prompt("e", 1))
}

// An engine that restarted has an empty cache.
func TestRestartForgetsTheCache(t *testing.T) {
	for name, pages := range map[string][2]*Load{
		"start time":         {{Running: Known(0), StartTime: Known(1000)}, {Running: Known(0), StartTime: Known(2000)}},
		"counters went back": {{Running: Known(0), PromptTokens: Known(5000)}, {Running: Known(0), PromptTokens: Known(0)}},
	} {
		d := newDesk(t, 1)
		d.r.Scraped(d.now, d.targets[0].ID, pages[0])
		d.serve(prompt("a", 10))
		if got := d.r.Snapshot(d.now)[0].Entries; got != 10 {
			t.Fatalf("%d blocks are held, want 10", got)
		}
		d.r.Scraped(d.now, d.targets[0].ID, pages[1])
		if got := d.r.Snapshot(d.now)[0].Entries; got != 0 {
			t.Errorf("%s: %d blocks are held after a restart", name, got)
		}
	}
}

// An upstream that is clearly slower gets less.
func TestUnequalMachines(t *testing.T) {
	d := newDesk(t, 2)
	for i := range 120 {
		c := d.pick(prompt(i, 8))
		took := 100 * time.Millisecond
		if c.Index == 0 {
			took *= 4
		}
		d.now = d.now.Add(took)
		d.r.FirstByte(d.now, c.Ticket)
		d.r.Done(d.now, c.Ticket, Completed, nil)
	}
	counts := make([]int, 2)
	for i := range 60 {
		counts[d.pick(prompt("open", 1, i, 8)).Index]++
	}
	if counts[0]*2 > counts[1] {
		t.Errorf("of 60 open prompts the upstream of a quarter of the speed got %d, the other %d", counts[0], counts[1])
	}
}

// Requests whose first token can't be seen leave the modelled queue when their
// work must be done.
func TestUnstreamedRequestsDrain(t *testing.T) {
	d := newDesk(t, 1)
	q := prompt("a", 40)
	q.Stream = false
	c := d.pick(q)
	d.r.FirstByte(d.now, c.Ticket) // the whole answer, not the first token
	if u := d.r.Snapshot(d.now)[0]; u.Prefill != 1 {
		t.Fatalf("%d in prefill, want 1", u.Prefill)
	}
	d.now = d.now.Add(10 * time.Second)
	next := d.pick(prompt("b", 1))
	if u := d.r.Snapshot(d.now)[0]; u.Decode != 1 || u.Prefill != 1 {
		t.Errorf("after 10 s %d in prefill and %d in decode, want the new one and the old one", u.Prefill, u.Decode)
	}
	d.r.Done(d.now, next.Ticket, Completed, nil)
	d.r.Done(d.now, c.Ticket, Completed, nil)
	d.idle()
}

func TestReleasesAreIdempotent(t *testing.T) {
	d := newDesk(t, 2)
	first := d.pick(prompt("a", 3))
	d.r.Done(d.now, first.Ticket, Completed, nil)
	second := d.pick(prompt("b", 3)) // takes the place of the first
	for range 3 {
		d.r.Done(d.now, first.Ticket, Failed, nil)
		d.r.FirstByte(d.now, first.Ticket)
		d.r.Done(d.now, 0, Failed, nil)
		d.r.Done(d.now, 1<<40, Failed, nil)
	}
	inFlight := 0
	for _, u := range d.r.Snapshot(d.now) {
		inFlight += u.Prefill + u.Decode
		if u.Failures != 0 {
			t.Errorf("%s: a stale ticket counted a failure", u.ID)
		}
	}
	if inFlight != 1 {
		t.Errorf("%d in flight, want the second request", inFlight)
	}
	d.r.Done(d.now, second.Ticket, Cancelled, nil)
	d.idle()
}

func TestUpstreamsAreForgotten(t *testing.T) {
	d := newDesk(t, 3)
	for i := range 20 {
		d.serve(prompt(i, 4))
	}
	d.targets = d.targets[:1]
	d.now = d.now.Add(2 * forgetAfter)
	d.serve(prompt("later", 4))
	if got := d.r.Snapshot(d.now); len(got) != 1 || got[0].ID != "U1:8000" {
		t.Errorf("%d upstreams are known, want U1", len(got))
	}
	// A name that comes back begins anew, in a place that was freed.
	d.targets = append(d.targets, Target{ID: "U3:8000"})
	for i := range 20 {
		d.serve(prompt(i, 4))
	}
	d.idle()
}

// A crowd that comes for a new document doesn't all wait where that is prefilled:
// it was there in LMetric's replays before it was many among the last requests,
// and its first third of a second made the 99th percentile.
func TestACrowdOnANewDocumentIsSpreadAtOnce(t *testing.T) {
	d := newDesk(t, 8)
	for c := range 200 { // busy enough that copies stall somebody
		d.pick(prompt(c, 4))
		d.now = d.now.Add(time.Millisecond)
		if c >= 160 {
			continue
		}
		for place := range d.r.flights {
			if f := &d.r.flights[place]; f.up != nil && !f.decoding {
				d.r.FirstByte(d.now, Ticket(uint64(f.generation)<<32|uint64(place)))
			}
		}
	}
	used := make(map[int]bool)
	for i := range 20 {
		c := d.pick(prompt("document", 100, i, 4))
		used[c.Index] = true
		d.now = d.now.Add(5 * time.Millisecond)
	}
	if len(used) < 7 {
		t.Errorf("20 requests in 100 ms wait at %d upstreams, want at least 7 of 8", len(used))
	}
}

// A request that goes on from an answer has one upstream to choose. What is popular
// among all is not forgotten for it.
func TestOneWithoutAChoiceLeavesPopularWhatIs(t *testing.T) {
	d := newDesk(t, 16)
	all := d.targets
	tenant := prompt("tenant", 12).Chain[0]
	lone := 0
	for i := range 1500 {
		q := prompt("noise", 1, i, 4)
		if i%3 == 0 {
			q = prompt("tenant", 12, i, 2)
		}
		d.targets = all
		if i%25 == 24 {
			q, d.targets = prompt("follow-up", 3, i, 1), all[3:4]
			lone++
		}
		d.r.Done(d.now, d.pick(q).Ticket, Cancelled, nil)
		if i < 400 {
			continue
		}
		if got := d.r.popular.share(tenant); got < 0.25 || got > 0.4 {
			t.Fatalf("after %d requests, %d of them without a choice, the tenant has %.3f of them, want about a third", i, lone, got)
		}
	}
	// Where all have less to choose, the window follows, and keeps the last.
	d.targets = all[:2]
	for i := range 800 {
		d.r.Done(d.now, d.pick(prompt("other", 12, i, 2)).Ticket, Cancelled, nil)
	}
	if got, size := d.r.popular.share(prompt("other", 12).Chain[0]), d.r.popular.size; got != 1 || size != 2*windowPerUpstream {
		t.Errorf("of the last %d requests %.3f are of the only tenant, want all of %d", size, got, 2*windowPerUpstream)
	}
}
