package route

import (
	"math"
	"testing"
	"time"
)

// crowded is a desk whose upstreams show, page after page, as many requests of
// others as this gateway has.
func crowded(t *testing.T, n int) *desk {
	t.Helper()
	d := newDesk(t, n)
	for i := range n {
		q := prompt("own", 1, i, 2)
		c := d.pick(q)
		d.r.FirstByte(d.now, c.Ticket)
	}
	for range 2 * peersAfter {
		d.now = d.now.Add(time.Second / time.Duration(n))
		for i := range n {
			u := d.r.upstreams[d.r.slots[d.targets[i].ID]]
			d.scrape(i, 0, float64(2*u.inFlight()))
		}
	}
	return d
}

// Gateways that share nothing agree where a session belongs that none of them
// has seen, also where loads differ somewhat.
func TestGatewaysAgreeOnAnOwnerWithoutAWord(t *testing.T) {
	const n = 6
	a, b := crowded(t, n), crowded(t, n)
	if got := a.r.peers.count(); got < 1.8 || got > 2.2 {
		t.Fatalf("%.2f gateways seem to be, want 2", got)
	}
	agreed := 0
	for i := range 60 {
		q := prompt("system", 4, i, 12)
		x, y := a.pick(q), b.pick(q)
		if x.Index == y.Index {
			agreed++
		}
		a.r.Done(a.now, x.Ticket, Cancelled, nil)
		b.r.Done(b.now, y.Ticket, Cancelled, nil)
		// What one of them does moves its own loads, and not the other's.
		c := a.pick(prompt("noise", 1, i, 3))
		a.now = a.now.Add(20 * time.Millisecond)
		a.r.FirstByte(a.now, c.Ticket)
		a.r.Done(a.now, c.Ticket, Completed, nil)
	}
	if agreed < 50 {
		t.Errorf("two gateways agree on %d of 60 new sessions", agreed)
	}
}

// While pages show requests of others they are asked for more often, and for a while
// after; where they show none, or stand still, as often as ever.
func TestPagesAreAskedForMoreOftenWhileTheyShowOthers(t *testing.T) {
	d := newDesk(t, 2)
	want := func(when string, every, want time.Duration) {
		t.Helper()
		if got := d.r.ScrapeEvery(d.now, every); got != want {
			t.Errorf("%s: pages are asked for each %v, want %v", when, got, want)
		}
	}
	want("before any page", time.Second, time.Second)
	d.pick(prompt("own", 1, 0, 2))
	for i := range 2 {
		d.scrape(i, 0, float64(d.r.upstreams[i].inFlight()))
	}
	want("alone", time.Second, time.Second)
	d.now = d.now.Add(time.Second)
	d.scrape(1, 0, 9)
	want("beside others", time.Second, 250*time.Millisecond)
	want("beside others", 20*time.Second, 5*time.Second)
	want("beside others", 100*time.Millisecond, 100*time.Millisecond)
	for range 11 {
		d.now = d.now.Add(time.Second)
		d.scrape(1, 0, 9)
	}
	want("where the page stands still", time.Second, time.Second)
}

// A gateway that is alone, and one beside which a stray request is seen, own
// all that they know of.
func TestAloneThereIsNoOwner(t *testing.T) {
	d := newDesk(t, 4)
	for i := range 8 {
		c := d.pick(prompt("own", 1, i, 2))
		d.r.FirstByte(d.now, c.Ticket)
	}
	for round := range 4 * peersAfter {
		d.now = d.now.Add(time.Second)
		for i := range d.targets {
			own := d.r.upstreams[d.r.slots[d.targets[i].ID]].inFlight()
			stray := 0
			if round%10 == 0 && i == 0 {
				stray = 1
			}
			d.scrape(i, 0, float64(own+stray))
		}
	}
	if got := d.r.peers.count(); got != 1 {
		t.Errorf("%.2f gateways seem to be, want 1", got)
	}
	q := prompt("new", 1, 3, 9)
	d.pick(q)
	for i, c := range d.r.candidates {
		if c.owned || c.shares || c.up.company != (company{}) {
			t.Errorf("upstream %d is thought to have got something from others: %+v", i, c.up.company)
		}
	}
}

// Where sessions stay with one gateway each, owners hold nothing, and answers
// that tell so end the belief.
func TestAnOwnerThatHoldsNothingIsNotBelievedIn(t *testing.T) {
	d := crowded(t, 4)
	for i := range 400 {
		q := prompt("session", 1, i, 20)
		c := d.pick(q)
		d.now = d.now.Add(50 * time.Millisecond)
		d.r.FirstByte(d.now, c.Ticket)
		d.r.Done(d.now, c.Ticket, Completed, &Usage{PromptTokens: q.Bytes / 4, CompletionTokens: 10, CachedTokens: c.MatchedTokens, CachedKnown: true})
	}
	if got := d.r.peers.ending; got > 2*guessMin {
		t.Errorf("an owner is thought to hold %.2f of a prompt, want next to nothing", got)
	}
}

// Where others send much, our own work costs more: gateways settle apart.
func TestWorkCostsMoreWhereOthersSend(t *testing.T) {
	d := newDesk(t, 2)
	for i := range 40 {
		d.serve(prompt("own", 1, i, 20))
	}
	moved := 0.0
	var answering []Choice
	for range peersAfter {
		d.now = d.now.Add(time.Second)
		for i, theirs := range []float64{6, 1} {
			moved++
			u := d.r.upstreams[d.r.slots[d.targets[i].ID]]
			d.r.Scraped(d.now, d.targets[i].ID, &Load{Waiting: Known(0), Running: Known(float64(u.inFlight()) + theirs), PromptTokens: Known(moved)})
		}
		for _, c := range answering {
			d.r.Done(d.now, c.Ticket, Completed, nil)
		}
		answering = answering[:0]
		for i := range 4 {
			c := d.pick(prompt(int(moved)*10+i, 20))
			d.now = d.now.Add(time.Duration(float64(requestWork+c.PromptTokens) / 1e4 * float64(time.Second)))
			d.r.FirstByte(d.now, c.Ticket)
			answering = append(answering, c)
		}
	}
	for _, c := range answering {
		d.r.Done(d.now, c.Ticket, Completed, nil)
	}
	terms := d.r.Explain(d.now, prompt("cold", 20), d.targets)
	if d.r.peers.count() <= 1 || terms[0].Stall < terms[1].Stall*2 {
		t.Errorf("with 6 and 1 requests of others a prompt of ours takes %.4f and %.4f s from them", terms[0].Stall, terms[1].Stall)
	}
	if terms[0].Queue > terms[1].Queue {
		t.Errorf("what others will send is taken to come first: it waits for %.4f and %.4f s", terms[0].Queue, terms[1].Queue)
	}
	// But once they have settled apart, where nothing of ours is heard much of theirs is.
	d.r.peers.owning, d.r.peers.ending = guessMin, guessMin
	if terms = d.r.Explain(d.now, prompt("cold", 20), d.targets); terms[0].Queue < terms[1].Queue*2 {
		t.Errorf("where others settled with 6 and 1 requests, a prompt waits for %.4f and %.4f s", terms[0].Queue, terms[1].Queue)
	}
}

// A gateway that gets nothing for a while knows no less of how busy others keep each
// upstream: it took all to be busy all the time after half a minute, and none of it
// was a number after some hours. What of its own few requests is seen on a page, and
// what isn't, says nothing of that either.
func TestAnIdleGatewayStillTellsTheBusyFromTheIdle(t *testing.T) {
	d := newDesk(t, 2)
	moved := 0.0
	pages := func(n int) {
		for range n {
			d.now = d.now.Add(time.Second)
			moved++
			for i, theirs := range []float64{4, 0} {
				u := d.r.upstreams[d.r.slots[d.targets[i].ID]]
				d.r.Scraped(d.now, d.targets[i].ID, &Load{Waiting: Known(0), Running: Known(float64(u.inFlight()) + theirs), PromptTokens: Known(moved)})
			}
		}
	}
	busy := func() (busy [2]float64) {
		d.r.Explain(d.now, prompt("cold", 20), d.targets)
		for i := range busy {
			busy[i] = d.r.upstreams[d.r.slots[d.targets[i].ID]].company.busy
		}
		return busy
	}
	for i := range 2 * peersAfter {
		c := d.pick(prompt("own", 1, i, 4))
		d.now = d.now.Add(100 * time.Millisecond)
		d.r.FirstByte(d.now, c.Ticket)
		pages(2) // it is seen on some of them
		d.r.Done(d.now, c.Ticket, Completed, nil)
	}
	before := busy()
	if d.r.peers.count() <= 1 || before[0] < 0.05 || before[0] > 0.9 || before[1] > 0.01 {
		t.Fatalf("with 4 and 0 requests of others upstreams are busy for %v of the time", before)
	}
	for _, minutes := range []int{1, 10, 300} {
		pages(60 * minutes)
		if after := busy(); math.Abs(after[0]-before[0]) > 0.01 || !(after[1] < 0.01) {
			t.Errorf("after %d minutes without a request of ours upstreams are busy for %v of the time, want %v still", minutes, after, before)
		}
	}
}

// With hundreds of upstreams a stray request isn't a reason to read pages all day.
func TestPagesOfManyUpstreamsAreNotAskedForMoreOften(t *testing.T) {
	for n, want := range map[int]time.Duration{8: 250 * time.Millisecond, 100: 500 * time.Millisecond, 512: time.Second} {
		d := newDesk(t, n)
		d.pick(prompt("own", 1))
		d.scrape(0, 0, 0)
		d.now = d.now.Add(time.Second)
		d.scrape(0, 2, 3)
		if got := d.r.ScrapeEvery(d.now, time.Second); got != want {
			t.Errorf("of %d upstreams pages are asked for each %v, want %v", n, got, want)
		}
	}
}

// Requests that aren't streamed are thought to decode when they should have been
// prefilled. With all slots taken the engine has them waiting still, and a gateway that
// was alone took them for another's.
func TestOwnRequestsThatWaitForASlotAreNoPeers(t *testing.T) {
	const slots = 8
	d := newDesk(t, 2)
	var sent [2]int
	for i := range 100 {
		q := prompt("unlike", 1, i, 5)
		q.Stream = false
		sent[d.pick(q).Index]++
	}
	output := 0.0
	for range 40 {
		d.now = d.now.Add(250 * time.Millisecond)
		output += 100
		for i, n := range sent {
			d.r.Scraped(d.now, d.targets[i].ID, &Load{
				Waiting: Known(float64(max(n-slots, 0))), Running: Known(float64(min(n, slots))), OutputTokens: Known(output),
			})
		}
		d.pick(prompt("unlike", 1)) // queues are drained when somebody asks
		sent[d.pick(prompt("unlike", 2)).Index]++
	}
	if n := d.r.peers.count(); n != 1 {
		t.Errorf("%.2f gateways are believed in, want this one alone", n)
	}
}

// What an engine had from a gateway that has just ended is no peer's.
func TestWhatWasSentBeforeAGatewayBeganIsNoPeers(t *testing.T) {
	d := newDesk(t, 4)
	d.pick(prompt("own", 1))
	for i := range 4 {
		d.scrape(i, 0, 5)
	}
	d.now = d.now.Add(250 * time.Millisecond)
	for i := range 4 {
		d.scrape(i, 0, 0)
	}
	if n := d.r.peers.count(); n != 1 {
		t.Errorf("%.2f gateways are believed in, want this one alone", n)
	}
}

// An engine that renews its gauges each 2 s shows what it had then eight times, and
// requests of ours that ended meanwhile were taken for others' by two such pages.
func TestGaugesThatAreRenewedSeldomShowNoPeers(t *testing.T) {
	d := newDesk(t, 2)
	d.scrape(0, 0, 0)
	d.scrape(1, 0, 0)
	believed := 0
	for n := range 30 { // each 2 s a burst that ends within one
		var burst []Choice
		for i := range 16 {
			burst = append(burst, d.pick(prompt("unlike", 1, i, 5)))
		}
		shown := [2]float64{}
		for _, c := range burst {
			shown[c.Index]++
		}
		for tick := range 8 {
			for i := range shown {
				d.r.Scraped(d.now, d.targets[i].ID, &Load{Waiting: Known(0), Running: Known(shown[i]), OutputTokens: Known(float64(n + 1))})
			}
			if d.r.peers.count() > 1 {
				believed++
			}
			d.now = d.now.Add(250 * time.Millisecond)
			if tick == 1 {
				for _, c := range burst {
					d.r.FirstByte(d.now, c.Ticket)
					d.r.Done(d.now, c.Ticket, Completed, nil)
				}
			}
		}
	}
	if believed > 0 {
		t.Errorf("other gateways were believed in at %d of 240 pages, want none", believed)
	}
}
