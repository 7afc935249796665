package route

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// listener hears the steps of an engine that prefills 10,000 tokens a second and
// answers one stream of ours, in steps of 10 ms where there is nothing else.
type listener struct {
	*desk
	u    *upstream
	each spread
}

func listening(t *testing.T, size float64) *listener {
	t.Helper()
	d := newDesk(t, 1)
	c := d.pick(prompt("ours", 4))
	d.r.FirstByte(d.now, c.Ticket)
	l := &listener{desk: d, u: d.r.upstreams[0]}
	l.u.rate = 10_000
	l.each.add(size)
	for range 100 {
		l.step(10 * time.Millisecond)
	}
	return l
}

// step ends a step of the engine.
func (l *listener) step(length time.Duration) {
	l.now = l.now.Add(length)
	l.u.pulse.Beat(l.now, length)
}

// after is what is overheard so long after the last step began, where 1,000
// tokens of others come in a second.
func (l *listener) after(d time.Duration) (float64, bool) {
	return l.u.overhear(l.r.clock.at(l.now.Add(d)), 1000, &l.each)
}

func TestPrefillsOfOthersAreOverheard(t *testing.T) {
	for name, c := range map[string]struct {
		size  float64 // of a request of theirs
		steps []time.Duration
		since time.Duration
		want  float64
	}{
		"steps without a prefill": {4000, nil, 5 * time.Millisecond, 15},
		// 40 ms of prefill are done, and what came since waits.
		"a step that is overdue":         {4000, nil, 50 * time.Millisecond, 3600 + 50},
		"a short prefill that is done":   {4000, []time.Duration{100 * time.Millisecond}, 2 * time.Millisecond, 100 + 2},
		"a step as large as they become": {50_000, []time.Duration{800 * time.Millisecond}, 5 * time.Millisecond, 42_000 + 5},
		"the third of them":              {50_000, []time.Duration{800 * time.Millisecond, 800 * time.Millisecond}, 510 * time.Millisecond, 29_000 + 510},
		"a prompt larger than any seen":  {4000, []time.Duration{800 * time.Millisecond}, 10 * time.Millisecond, 4000 + 10},
	} {
		l := listening(t, c.size)
		for _, s := range c.steps {
			l.step(s)
		}
		if got, ok := l.after(c.since); !ok || math.Abs(got-c.want) > 3 {
			t.Errorf("%s: %.0f tokens are overheard (%v), want %.0f", name, got, ok, c.want)
		}
	}
}

// What our own prompts account for isn't theirs.
func TestOwnPrefillsAreNotOverheard(t *testing.T) {
	l := listening(t, 4000)
	c := l.pick(prompt("long", 200)) // 12,800 tokens
	l.step(10 * time.Millisecond)    // it is in the step after this
	l.u.hear(l.r.clock.at(l.now), l.r.flights)
	if got, ok := l.after(800 * time.Millisecond); !ok || got > 801 {
		t.Errorf("800 ms into a step with a prompt of ours %.0f tokens of others are overheard, want the 800 that came", got)
	}
	l.step(800 * time.Millisecond)
	l.now = l.now.Add(600 * time.Millisecond)
	l.r.FirstByte(l.now, c.Ticket)
	l.u.rate = 10_000
	l.u.pulse.Beat(l.now, 600*time.Millisecond)
	if got, ok := l.after(5 * time.Millisecond); !ok || got > 606 {
		t.Errorf("after a prompt of ours %.0f tokens of others are overheard, want at most what came during its last step", got)
	}
}

func TestSilenceTellsNothingOfOthers(t *testing.T) {
	l := listening(t, 4000)
	if _, ok := l.after(overheardFor + time.Second); ok {
		t.Error("a stream that fell silent is taken to tell of steps")
	}
	l.u.decoding = 0
	if _, ok := l.after(5 * time.Millisecond); ok {
		t.Error("without a stream of ours there are steps to be heard")
	}
}

// Against a plain mean: within the factor that sizes are told apart by.
func TestRestIsTheMeanOfThoseThatAreLarger(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var s spread
	var all []float64
	for range 200_000 { // the weights pass the bound where they begin anew
		w := math.Exp(8 + 1.2*rng.NormFloat64())
		s.add(w)
		all = append(all, w)
	}
	all = all[len(all)-3000:]
	for _, done := range []float64{0, 500, 3000, 20_000} {
		count, left, weight := 0.0, 0.0, 1.0
		for i := len(all) - 1; i >= 0; i-- {
			if all[i] > done {
				count += weight
				left += weight * (all[i] - done)
			}
			weight *= spreadMemory
		}
		if got, want := s.rest(done), left/count; got < want*0.8 || got > want*1.25 {
			t.Errorf("of requests of which %.0f is done %.0f is left, want %.0f", done, got, want)
		}
	}
}

// What is met at any time is a large request more often than a small one.
func TestWhatStandsIsMostlyLarge(t *testing.T) {
	var s spread
	if got := s.standing(); got != 0 {
		t.Errorf("nothing was seen, and %.0f tokens stand", got)
	}
	for range 200 {
		for range 9 {
			s.add(1000)
		}
		s.add(9000)
	}
	// (9·1000² + 9000²) / (9·1000 + 9000) / 2
	if got := s.standing(); math.Abs(got-2500) > 125 {
		t.Errorf("%.0f tokens are left of a request on average, want 2500", got)
	}
}

// Sizes that come no more fade to nothing in 200,000 answers: the count of one was 0
// while its work was the least number above, and what stands was no number, with which
// all cold prompts went to one upstream.
func TestASizeThatNoLongerComesIsForgotten(t *testing.T) {
	var s spread
	for i := range 400_000 {
		if size := 20 + i/1000; i%1000 == 0 && size < spreadSizes {
			s.add(math.Exp2(float64(size) / 2))
		}
		s.add(1000)
		if got := s.standing(); !(got > 499) {
			t.Fatalf("after %d requests %g tokens stand", i, got)
		}
		if got := s.rest(500); !(got > 249) {
			t.Fatalf("after %d requests %g tokens are left behind 500", i, got)
		}
	}
	if got := s.standing(); math.Abs(got-500) > 1 {
		t.Errorf("%g tokens stand of requests of 1000, want 500", got)
	}
}
