package scrape

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const page = "vllm:num_requests_running 3\nvllm:num_requests_waiting 7\n"

// event is what the sink was told; an empty reason is a good page.
type event struct {
	id, reason string
	at         time.Time
	waiting    float64
	status     int
	changed    bool
}

type recorder struct {
	mu     sync.Mutex
	events []event
	sooner atomic.Int64 // nanoseconds to the next scrape, if above 0
}

// Scraped implements Sink.
func (r *recorder) Scraped(res Result) time.Duration {
	e := event{id: res.Upstream, reason: res.Reason, at: time.Now(), status: res.Status, changed: res.Changed}
	if res.Page != nil {
		e.waiting = res.Page.Load.Waiting.Value
	}
	r.add(e)
	if next := time.Duration(r.sooner.Load()); next > 0 {
		return next
	}
	return res.Every
}

// ask sets a job that tells r.
func (r *recorder) ask(p *Poller, owner any, id string, interval, expiry time.Duration, places ...Fetch) {
	p.Set(Job{Owner: owner, Key: id, Sink: r, Upstream: id, Interval: interval, Expiry: expiry, Places: places})
}

func (r *recorder) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) of(id string) (found []event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.id == id {
			found = append(found, e)
		}
	}
	return found
}

func answer(status int, body string) Fetch {
	return func(context.Context) (io.ReadCloser, int, error) {
		return io.NopCloser(strings.NewReader(body)), status, nil
	}
}

func refuse(err error) Fetch {
	return func(context.Context) (io.ReadCloser, int, error) { return nil, 0, err }
}

func hang(ctx context.Context) (io.ReadCloser, int, error) {
	<-ctx.Done()
	return nil, 0, ctx.Err()
}

// stuckBody sends headers at once and its page never.
type stuckBody struct{ ctx context.Context }

func (b stuckBody) Read([]byte) (int, error) { <-b.ctx.Done(); return 0, b.ctx.Err() }
func (b stuckBody) Close() error             { return nil }

// run starts a poller and ends it with the test; the bubble fails the test if
// a goroutine is left.
func run(t *testing.T, cfg Config) (*Poller, *recorder) {
	t.Helper()
	rec := new(recorder)
	p := New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return p, rec
}

func (p *Poller) targetCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.targets)
}

func wantBetween(t *testing.T, what string, got, low, high int) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s = %d, want %d to %d", what, got, low, high)
	}
}

func TestScrapesAtOnceAndThenEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{})
		rec.ask(p, t, "a", time.Second, 0, answer(200, page))
		synctest.Wait()
		if got := rec.of("a"); len(got) != 1 || got[0].waiting != 7 {
			t.Fatalf("scrapes at the start = %+v, want one with 7 waiting", got)
		}
		time.Sleep(100 * time.Second)
		events := rec.of("a")
		wantBetween(t, "scrapes in 100 s", len(events), 91, 112)
		same := true
		for i := 1; i < len(events); i++ {
			d := events[i].at.Sub(events[i-1].at)
			if d < 900*time.Millisecond || d > 1100*time.Millisecond {
				t.Errorf("pause = %v, want 1s give or take a tenth", d)
			}
			same = same && d == events[1].at.Sub(events[0].at)
		}
		if same {
			t.Error("all pauses are alike, want jitter")
		}
	})
}

// Who hears a page may want the next one sooner than the interval, for as long as it
// says so; below the least interval, and after a failure, nobody gets it.
func TestASinkMayWantTheNextPageSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{})
		var down atomic.Bool
		rec.ask(p, t, "a", time.Second, 0, func(ctx context.Context) (io.ReadCloser, int, error) {
			if down.Load() {
				return nil, 0, syscall.ECONNREFUSED
			}
			return answer(200, page)(ctx)
		})
		for _, c := range []struct {
			next      time.Duration
			down      bool
			low, high int // scrapes in 10 s
		}{
			{250 * time.Millisecond, false, 36, 45},
			{time.Millisecond, false, 170, 225},
			{time.Minute, false, 9, 12},
			{250 * time.Millisecond, true, 1, 4},
			{0, false, 4, 12},
		} {
			rec.sooner.Store(int64(c.next))
			down.Store(c.down)
			before := len(rec.of("a"))
			time.Sleep(10 * time.Second)
			wantBetween(t, fmt.Sprintf("scrapes in 10 s where the next is wanted in %v", c.next), len(rec.of("a"))-before, c.low, c.high)
		}
	})
}

func TestFailuresAreNamed(t *testing.T) {
	for _, c := range []struct {
		want  string
		fetch Fetch
	}{
		{ReasonRefused, refuse(fmt.Errorf("dialing: %w", syscall.ECONNREFUSED))},
		{ReasonTimeout, hang},
		{ReasonTimeout, func(ctx context.Context) (io.ReadCloser, int, error) { return stuckBody{ctx}, 200, nil }},
		{ReasonStatus, answer(401, page)},
		{ReasonStatus, answer(204, "")},
		{ReasonRedirect, answer(307, "")},
		{ReasonStatus, answer(500, page)},
		{ReasonNotMetrics, refuse(fmt.Errorf("unpacking metrics: %w", gzip.ErrHeader))},
		{ReasonNotMetrics, answer(200, "")},
		{ReasonNotMetrics, answer(200, "<html>log in</html>")},
		{ReasonNotMetrics, answer(200, `[{"iter": 1}]`)},
		{ReasonNotMetrics, func(context.Context) (io.ReadCloser, int, error) { return nil, 200, nil }},
		{ReasonUnknownEngine, answer(200, "python_info 1\n")},
		{ReasonTooLarge, answer(200, strings.Repeat(page, 1000))},
		{ReasonOther, refuse(errors.New("no such host"))},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, rec := run(t, Config{PageLimit: 1000})
			rec.ask(p, t, "a", time.Second, 0, c.fetch)
			time.Sleep(2500 * time.Millisecond)
			if got := rec.of("a"); len(got) == 0 || got[0].reason != c.want {
				t.Errorf("scrapes = %+v, want the first to fail for %q", got, c.want)
			}
		})
	}
}

// FC-69: upstreams that hang, more of them than there are slots, don't make
// the others' numbers old.
func TestFC69SlowUpstreamsDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{Timeout: time.Second, MaxConcurrent: 4})
		var mu sync.Mutex
		open, most := 0, 0
		for i := range 3 {
			rec.ask(p, t, fmt.Sprint("slow", i), time.Second, 0, func(ctx context.Context) (io.ReadCloser, int, error) {
				mu.Lock()
				open++
				most = max(most, open)
				mu.Unlock()
				defer func() { mu.Lock(); open--; mu.Unlock() }()
				return hang(ctx)
			})
		}
		for i := range 4 {
			rec.ask(p, t, fmt.Sprint("good", i), time.Second, 0, answer(200, page))
		}
		time.Sleep(time.Minute)
		for i := range 4 {
			events := rec.of(fmt.Sprint("good", i))
			wantBetween(t, "scrapes of a good upstream in 60 s", len(events), 53, 68)
			for j := 1; j < len(events); j++ {
				if d := events[j].at.Sub(events[j-1].at); d > 2200*time.Millisecond {
					t.Errorf("pause = %v beside slow upstreams, want 2.2s at most", d)
				}
			}
		}
		for i := range 3 {
			events := rec.of(fmt.Sprint("slow", i))
			wantBetween(t, "scrapes of a slow upstream in 60 s", len(events), 5, 12)
			for _, e := range events {
				if e.reason != ReasonTimeout {
					t.Errorf("slow upstream's scrape came to %q, want %q", e.reason, ReasonTimeout)
				}
			}
		}
		wantBetween(t, "slow scrapes at once", most, 1, 3)
	})
}

func TestBackOffEndsWithTheFirstGoodPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{})
		var broken sync.Mutex
		down := true
		rec.ask(p, t, "a", 10*time.Second, 0, func(ctx context.Context) (io.ReadCloser, int, error) {
			broken.Lock()
			defer broken.Unlock()
			if down {
				return nil, 0, syscall.ECONNREFUSED
			}
			return answer(200, page)(ctx)
		})
		time.Sleep(10 * time.Minute)
		events := rec.of("a")
		last := events[len(events)-1].at.Sub(events[len(events)-2].at)
		if last < 27*time.Second || last > 33*time.Second {
			t.Errorf("pause of a dead upstream = %v, want 30s give or take a tenth", last)
		}
		broken.Lock()
		down = false
		broken.Unlock()
		before := len(events)
		time.Sleep(133 * time.Second)
		wantBetween(t, "scrapes within 133 s of recovery", len(rec.of("a"))-before, 10, 15)
	})
}

// FC-88: however often a config is loaded, an upstream is asked once an
// interval, and at the end by the newest config.
func TestFC88ReloadsKeepTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{})
		var mu sync.Mutex
		calls := map[int]int{}
		var old *int
		for i := range 500 {
			owner := new(int)
			rec.ask(p, owner, "a", time.Second, 0, func(ctx context.Context) (io.ReadCloser, int, error) {
				mu.Lock()
				calls[i]++
				mu.Unlock()
				return answer(200, page)(ctx)
			})
			if old != nil {
				p.Drop(old)
			}
			old = owner
			time.Sleep(200 * time.Millisecond)
		}
		wantBetween(t, "scrapes in 100 s of reloads", len(rec.of("a")), 91, 112)
		mu.Lock()
		for i, n := range calls {
			if n > 1 {
				t.Errorf("config %d, in force for 200 ms, scraped %d times, want 1 at most", i, n)
			}
		}
		mu.Unlock()
		p.Drop(old)
		synctest.Wait() // one may just be told
		before := len(rec.of("a"))
		time.Sleep(time.Minute)
		if got := len(rec.of("a")) - before; got != 0 {
			t.Errorf("scrapes after the last owner left = %d, want 0", got)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.targets) != 0 || p.queues[healthy].Len() != 0 || p.active != [2]int{} {
			t.Errorf("poller keeps %d targets, %d queued, %v scrapes, want none", len(p.targets), p.queues[healthy].Len(), p.active)
		}
	})
}

func TestOwnersShareTheShortestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{})
		slow, fast := new(int), new(int)
		rec.ask(p, slow, "a", 50*time.Second, 0, answer(200, page))
		time.Sleep(time.Second)
		rec.ask(p, fast, "a", time.Second, 0, answer(200, strings.Replace(page, "7", "8", 1)))
		time.Sleep(20 * time.Second)
		events := rec.of("a")
		wantBetween(t, "scrapes in 21 s", len(events), 18, 24)
		if got := events[len(events)-1].waiting; got != 8 {
			t.Errorf("last page has %v waiting, want 8 by the newest owner's fetch", got)
		}
		p.Drop(fast)
		before := len(events)
		time.Sleep(100 * time.Second)
		events = rec.of("a")
		wantBetween(t, "scrapes in 100 s without the fast owner", len(events)-before, 2, 4)
		if got := events[len(events)-1].waiting; got != 7 {
			t.Errorf("last page has %v waiting, want 7 by the owner that stayed", got)
		}
	})
}

func TestDropCancelsAndTellsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{Timeout: time.Hour})
		cancelled := make(chan time.Time, 1)
		rec.ask(p, t, "a", time.Second, 0, func(ctx context.Context) (io.ReadCloser, int, error) {
			<-ctx.Done()
			cancelled <- time.Now()
			return nil, 0, ctx.Err()
		})
		time.Sleep(time.Second)
		now := time.Now()
		p.Drop(t)
		if at := <-cancelled; !at.Equal(now) {
			t.Errorf("fetch cancelled %v after Drop, want at once", at.Sub(now))
		}
		time.Sleep(time.Minute)
		if got := rec.of("a"); len(got) != 0 {
			t.Errorf("sink was told %+v of a dropped upstream, want nothing", got)
		}
	})
}

func TestUnseenUpstreamsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{})
		for range 10 { // renewed in time
			rec.ask(p, t, "a", time.Second, 10*time.Second, answer(200, page))
			time.Sleep(8 * time.Second)
		}
		wantBetween(t, "scrapes in 80 s of renewals", len(rec.of("a")), 72, 90)
		time.Sleep(10 * time.Second)
		before := len(rec.of("a"))
		time.Sleep(time.Minute)
		if got := len(rec.of("a")) - before; got != 0 || p.targetCount() != 0 {
			t.Errorf("%d scrapes and %d targets after expiry, want none", got, p.targetCount())
		}
	})
}

func TestPanicsAreFailedScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{MaxConcurrent: 2})
		rec.ask(p, t, "bad", time.Second, 0, func(context.Context) (io.ReadCloser, int, error) { panic("bug") })
		rec.ask(p, t, "good", time.Second, 0, answer(200, page))
		time.Sleep(30 * time.Second)
		bad := rec.of("bad")
		if len(bad) < 3 || bad[0].reason != ReasonPanic || p.Panics() != uint64(len(bad)) {
			t.Errorf("%d panics, told %+v, want each told as %q", p.Panics(), bad, ReasonPanic)
		}
		wantBetween(t, "scrapes of the other upstream", len(rec.of("good")), 27, 35)
	})
}

func TestUpstreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{MaxUpstreams: 2})
		for _, id := range []string{"a", "b", "c"} {
			rec.ask(p, t, id, 0, 0, answer(200, page))
		}
		time.Sleep(5 * time.Second)
		if len(rec.of("b")) == 0 || len(rec.of("c")) != 0 {
			t.Errorf("scrapes of the second and third of 2 upstreams = %d, %d, want some and none", len(rec.of("b")), len(rec.of("c")))
		}
	})
}

// Many owners come and go while scrapes run; for the race detector.
func TestConcurrentOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range 50 {
					owner := new(int)
					rec.ask(p, owner, fmt.Sprint(i%5), time.Second, 0, answer(200, page))
					time.Sleep(100 * time.Millisecond)
					p.Drop(owner)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Minute)
		if p.targetCount() != 0 || len(rec.events) == 0 {
			t.Errorf("%d targets left, %d scrapes, want none and some", p.targetCount(), len(rec.events))
		}
	})
}
