package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// counted is a fetch of an answer that counts its calls and the bodies not
// closed.
type counted struct {
	mu     sync.Mutex
	status int
	text   string
	err    error
	calls  int
	open   int
}

// Close implements io.Closer.
func (c *counted) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	return nil
}

func (c *counted) set(status int, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status, c.text = status, text
}

func (c *counted) counts() (calls, open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls, c.open
}

func (c *counted) fetch(context.Context) (io.ReadCloser, int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.err != nil {
		return nil, 0, c.err
	}
	c.open++
	return struct {
		io.Reader
		io.Closer
	}{strings.NewReader(c.text), c}, c.status, nil
}

// trtllm-serve has JSON at /metrics, and its page at /prometheus/metrics.
func TestThePlaceWithThePageIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		json := &counted{status: 200, text: `[{"iter": 1}]`}
		prom := &counted{status: 200, text: page}
		p, rec := run(t, Config{})
		rec.ask(p, t, "a", time.Second, 0, json.fetch, prom.fetch)
		time.Sleep(10500 * time.Millisecond)
		for _, e := range rec.of("a") {
			if e.reason != "" || e.waiting != 7 {
				t.Fatalf("scrapes came to %+v, want the second place's page", e)
			}
		}
		first, firstOpen := json.counts()
		second, secondOpen := prom.counts()
		if first != 1 || second < 9 || firstOpen != 0 || secondOpen != 0 {
			t.Errorf("calls = %d, %d, bodies left open = %d, %d, want 1, 10, 0, 0", first, second, firstOpen, secondOpen)
		}
		// The engine is replaced by one with its page at the first place.
		json.set(200, page)
		prom.set(404, "")
		time.Sleep(3 * time.Second)
		events := rec.of("a")
		if last := events[len(events)-1]; last.reason != "" {
			t.Errorf("after the page has moved, scrapes come to %+v", last)
		}
		before, _ := prom.counts()
		time.Sleep(3 * time.Second)
		if after, _ := prom.counts(); after != before {
			t.Error("the place that the page has left is still asked")
		}
	})
}

func TestTheFirstPlaceAnswersIfNoneHasAPage(t *testing.T) {
	for _, c := range []struct {
		name         string
		first        *counted
		reason       string
		status, more int // calls of the second place
	}{
		{"a key is missing", &counted{status: 401}, ReasonStatus, 401, 1},
		{"no metrics", &counted{status: 404, text: "<html>"}, ReasonStatus, 404, 1},
		{"another engine", &counted{status: 200, text: "python_info 1\n"}, ReasonUnknownEngine, 200, 1},
		{"an unknown coding", &counted{err: errCoding}, ReasonNotMetrics, 0, 1},
		{"away", &counted{err: errors.New("no route")}, ReasonOther, 0, 0},
		{"too large", &counted{status: 200, text: strings.Repeat(page, 1000)}, ReasonTooLarge, 200, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			none := &counted{status: 404, text: "404 page not found"}
			p, rec := run(t, Config{PageLimit: 1000})
			rec.ask(p, t, "a", time.Second, 0, c.first.fetch, none.fetch)
			synctest.Wait()
			events := rec.of("a")
			calls, open := none.counts()
			if calls != c.more || len(events) != 1 || events[0].reason != c.reason || events[0].status != c.status {
				t.Errorf("%s: %+v after %d calls of the second place, want %q with status %d after %d",
					c.name, events, calls, c.reason, c.status, c.more)
			}
			if _, firstOpen := c.first.counts(); open != 0 || firstOpen != 0 {
				t.Errorf("%s: bodies are left open", c.name)
			}
		})
	}
}

// FC-71: whoever asks for an upstream in one way shares its scrapes; who asks
// in another doesn't.
func TestFC71JobsOfOneKeyShareScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{})
		other := new(recorder)
		asked := &counted{status: 200, text: page}
		set := func(sink *recorder, key string) *int {
			owner := new(int)
			p.Set(Job{Owner: owner, Key: key, Sink: sink, Upstream: "a", Interval: time.Second, Places: []Fetch{asked.fetch}})
			return owner
		}
		set(rec, "a")
		set(rec, "a")
		third := set(other, "a")
		time.Sleep(60 * time.Second)
		before, _ := asked.counts()
		wantBetween(t, "scrapes of three jobs in 60 s", before, 54, 68)
		if len(rec.of("a")) != before || len(other.of("a")) < before-2 {
			t.Errorf("%d scrapes are told to the sinks %d and %d times", before, len(rec.of("a")), len(other.of("a")))
		}
		p.Drop(third)
		heard := len(other.of("a"))
		set(rec, "a with a key")
		time.Sleep(60 * time.Second)
		after, _ := asked.counts()
		wantBetween(t, "scrapes in two ways in 60 s", after-before, 108, 136)
		if len(other.of("a")) != heard {
			t.Error("a sink is told after its last job was dropped")
		}
	})
}

// What lasts is told once, and what comes and goes not each time.
func TestChangesAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{})
		asked := &counted{status: 200, text: page}
		rec.ask(p, t, "a", time.Second, 0, asked.fetch)
		told := func() (reasons []string) {
			for _, e := range rec.of("a") {
				if e.changed {
					reasons = append(reasons, e.reason)
				}
			}
			return reasons
		}
		want := func(what, reasons string) {
			t.Helper()
			if got := fmt.Sprintf("%q", told()); got != reasons {
				t.Errorf("%s: told %s, want %s", what, got, reasons)
			}
		}
		time.Sleep(10 * time.Second)
		want("a good upstream", `[]`)
		asked.set(401, page)
		time.Sleep(time.Hour)
		want("an hour without its key", `["status"]`)
		asked.set(200, page)
		time.Sleep(time.Hour)
		want("good again", `["status" ""]`)
		for i := range 600 {
			asked.set([]int{401, 200}[i%2], page)
			time.Sleep(1300 * time.Millisecond)
		}
		wantBetween(t, "told in 13 min of change", len(told()), 20, 2+14*maxChanges)
		asked.set(401, page)
		time.Sleep(2 * time.Minute)
		if got := told(); got[len(got)-1] != ReasonStatus {
			t.Errorf("last told %q, want what lasts", got[len(got)-1])
		}
	})
}

// A thousand upstreams, of which some hang and some are slow, keep fresh.
func TestFC69AThousandUpstreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rec := run(t, Config{})
		slow := func(ctx context.Context) (io.ReadCloser, int, error) {
			select {
			case <-time.After(300 * time.Millisecond):
				return answer(200, page)(ctx)
			case <-ctx.Done():
				return nil, 0, ctx.Err()
			}
		}
		for i := range 1000 {
			f := answer(200, page)
			switch {
			case i%20 == 0:
				f = hang
			case i%10 == 1:
				f = slow
			}
			rec.ask(p, t, fmt.Sprint(i), time.Second, 0, f)
		}
		time.Sleep(20 * time.Second)
		for i := range 1000 {
			if i%20 == 0 {
				continue
			}
			events := rec.of(fmt.Sprint(i))
			for j := 1; j < len(events); j++ {
				if d := events[j].at.Sub(events[j-1].at); events[j-1].at.After(events[0].at.Add(5*time.Second)) && d > 2200*time.Millisecond {
					t.Fatalf("upstream %d waited %v for its scrape, want 2.2s at most", i, d)
				}
			}
			wantBetween(t, "scrapes of a good upstream in 20 s", len(events), 14, 25)
		}
	})
}
