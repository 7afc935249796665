package route

import (
	"testing"
	"time"
)

// One upstream has another model than the others, or another key, and turns each
// request away at once. It is idle all the time, and drew nearly all prompts of a
// busy pool.
func TestAnUpstreamThatRefusesWhatOthersServeDrawsNoCrowd(t *testing.T) {
	for _, n := range []int{3, 8} {
		d := newDesk(t, n)
		type running struct {
			c   Choice
			end time.Time
		}
		var busy []running
		counts := make([]int, n)
		const all = 1200
		for i := range all { // as many for each as keep it busy
			c := d.pick(prompt(i, 4))
			counts[c.Index]++
			if c.Index == 0 {
				d.now = d.now.Add(time.Millisecond)
				d.r.Done(d.now, c.Ticket, Rejected, nil)
			} else {
				busy = append(busy, running{c, d.now.Add(time.Second)})
			}
			d.now = d.now.Add(150 * time.Millisecond / time.Duration(n))
			for len(busy) > 0 && !busy[0].end.After(d.now) {
				d.r.FirstByte(d.now, busy[0].c.Ticket)
				d.complete(busy[0].c)
				busy = busy[1:]
			}
		}
		if counts[0] == 0 || counts[0] > all/n {
			t.Errorf("of %d upstreams, the one that refuses gets %d of %d prompts, want some and no more than its share", n, counts[0], all)
		}
		for _, b := range busy {
			d.complete(b.c)
		}
		// As soon as it serves again it is like the others.
		serves := d.pick(prompt("again", 4))
		for i := 0; serves.Index != 0; i++ {
			d.complete(serves)
			serves = d.pick(prompt("again", i, 4, 4))
		}
		d.r.FirstByte(d.now, serves.Ticket)
		d.complete(serves)
		if got := d.counts(10_000, 50*n, d.complete); got[0] < 20 {
			t.Errorf("of %d upstreams, the one that serves again gets %d of %d prompts", n, got[0], 50*n)
		}
		d.idle()
	}
}

// A client whose requests are refused wherever they go moves nobody else.
func TestRefusalsEverywhereMoveNobody(t *testing.T) {
	f := newFarm(t, 3)
	homes, moved, turns := make(map[int]int), 0, 0
	var counts [3]int
	for i := range 600 {
		for range 5 {
			c := f.pick(prompt("bad", i, "bad", 20))
			f.r.Done(f.now, c.Ticket, Rejected, nil)
		}
		conversation := i % 60
		at := f.send(prompt(conversation, 8+4*(i/60)), 300*time.Millisecond, nil)
		counts[at]++
		if home, ok := homes[conversation]; ok {
			if turns++; home != at {
				moved++
			}
		}
		homes[conversation] = at
		for range 12 {
			f.step()
		}
	}
	if moved > turns/20 {
		t.Errorf("%d of %d turns leave their upstream", moved, turns)
	}
	for i, n := range counts {
		if n < 100 || n > 320 {
			t.Errorf("U%d gets %d of 600 prompts", i+1, n)
		}
	}
}

// One client sends one prompt over and over that is refused at once wherever it
// goes: each refusal made the upstream that it came from look as busy as the
// others, and one turn in fifteen was sent away from its cache.
func TestOneClientThatIsAlwaysRefusedMovesNobody(t *testing.T) {
	for _, every := range []int{10, 5} { // ticks
		f := newFarm(t, 8)
		homes, moved, turns := make(map[int]int), 0, 0
		for i := range 1500 {
			conversation := i % 100
			at := f.send(prompt(conversation, 8+4*(i/100)), 300*time.Millisecond, nil)
			if home, ok := homes[conversation]; ok {
				if turns++; home != at {
					moved++
				}
			}
			homes[conversation] = at
			for range 7 {
				if f.ticks%every == 0 {
					c := f.pick(prompt("bad", 20))
					f.r.Done(f.now, c.Ticket, Rejected, nil)
				}
				f.step()
			}
		}
		if moved > turns/100 {
			t.Errorf("refused every %d ms, %d of %d turns leave their upstream", 10*every, moved, turns)
		}
	}
}
