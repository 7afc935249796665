package route

import (
	"math"
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

// refusedBefore has a request's upstream be one that refused as many in a row that
// one more counts.
func (d *desk) refusedBefore(c Choice) {
	if f, _ := d.r.flight(c.Ticket); f != nil {
		f.up.refusals = refusedAfter - 1
	}
}

func (d *desk) refuses(i int) {
	for n := range refusedAfter {
		d.r.Done(d.now, d.pickAt(i, prompt("refused", n, i, 4)).Ticket, Rejected, nil)
	}
}

// What one that refuses has to do was taken from all others: those that had failed
// and had nothing to do, or hung with all that they ever got, and from what was sent
// to them, however much of it was done.
func TestOneThatRefusesIsAsBusyAsThoseThatServe(t *testing.T) {
	for name, spoil := range map[string]func(d *desk){
		"nothing else": func(*desk) {},
		"one failed":   func(d *desk) { d.r.Done(d.now, d.pickAt(3, prompt("failed", 4)).Ticket, Failed, nil) },
		"one was tried": func(d *desk) {
			d.targets[3].Tried = true
		},
		"one sleeps": func(d *desk) {
			d.r.Scraped(d.now, d.targets[3].ID, &Load{Waiting: Known(0.), Running: Known(0.), Awake: Known(0.)})
		},
		"one hangs": func(d *desk) {
			for i := range 40 {
				d.pickAt(3, prompt("hangs", 1, i, 100))
			}
			d.now = d.now.Add(stallMax + time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, 4)
			spoil(d)
			d.refuses(0)
			for i := range 6 {
				d.pickAt(1+i/2%2, prompt("served", i, i, 40*(i+1)))
			}
			d.now = d.now.Add(400 * time.Millisecond)
			all := d.r.Explain(d.now, prompt("new", 4), d.targets)
			sum, serving := all[1].Queue+all[2].Queue, 2.0
			if name == "nothing else" {
				sum, serving = sum+all[3].Queue, 3
			}
			if usual := sum / serving; usual <= 0 || math.Abs(all[0].Queue-usual) > 1e-9 {
				t.Errorf("the one that refuses has %.3f s to do, the others %.3f", all[0].Queue, usual)
			}
		})
	}
}

// Where most refuse they were all as busy as the one that served, whatever they had
// to do.
func TestWhereMostRefuseTheyAreToldApart(t *testing.T) {
	d := newDesk(t, 4)
	for i := range 3 {
		d.refuses(i)
		for n := range i {
			d.pickAt(i, prompt("queue", n, i, 20))
		}
	}
	for n := range 8 {
		d.pickAt(3, prompt("served", n, n, 40))
	}
	all := d.r.Explain(d.now, prompt("new", 4), d.targets)
	if !(all[0].Queue < all[1].Queue && all[1].Queue < all[2].Queue && all[2].Queue < all[3].Queue) {
		t.Errorf("they have %.3f, %.3f, %.3f and %.3f s to do, want more for each", all[0].Queue, all[1].Queue, all[2].Queue, all[3].Queue)
	}
}
