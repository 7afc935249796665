package route

import (
	"testing"
	"time"
)

// What is believed of the rate before the first tokens weighs no more among many
// upstreams than with one: sixty-four that had two hundred requests between them
// were taken to be half as fast as they are.
func TestManyUpstreamsLearnTheirRateAsSoonAsOne(t *testing.T) {
	const rate = 50_000
	for _, n := range []int{1, 64} {
		d := newDesk(t, n)
		for i := range 40 {
			c := d.pick(prompt("unlike", 1, i, 50))
			d.now = d.now.Add(time.Duration((requestWork + float64(c.PromptTokens)) / rate * float64(time.Second)))
			d.r.FirstByte(d.now, c.Ticket)
			d.r.Done(d.now, c.Ticket, Completed, nil)
		}
		d.now = d.now.Add(2 * ratesFor)
		for _, u := range d.r.Snapshot(d.now) {
			if u.Rate < 0.8*rate || u.Rate > 1.1*rate {
				t.Fatalf("%s of %d is thought to prefill %.0f tokens/s after 40 first tokens, and does %d", u.ID, n, u.Rate, rate)
			}
		}
	}
}

// Of answers that aren't streamed nobody sees when their prefill was done. What was
// done before a stream was sent counted as done while it waited, so that few streams
// among many others taught nine times the rate, and with it that the others are done
// as soon as they are sent.
func TestFewStreamsTeachNoMoreThanManyDo(t *testing.T) {
	const rate, tokens, every = 20_000.0, 6400, 200 * time.Millisecond
	for _, streams := range []int{1, 2, 5, 20} { // one in so many requests is a stream
		d := newDesk(t, 2)
		free := [2]time.Time{} // when each engine will have prefilled what it has
		type ending struct {
			at, end time.Time
			c       Choice
			stream  bool
		}
		var open []ending
		until := func(at time.Time) { // what has come by then, in its order
			for {
				next := -1
				for i, e := range open {
					if !e.at.After(at) && (next < 0 || e.at.Before(open[next].at)) {
						next = i
					}
				}
				if next < 0 {
					break
				}
				e := &open[next]
				d.now = e.at
				if e.stream && e.at.Before(e.end) {
					d.r.FirstByte(e.at, e.c.Ticket)
					e.at = e.end
					continue
				}
				d.r.Done(e.at, e.c.Ticket, Completed, nil)
				open = append(open[:next], open[next+1:]...)
			}
			d.now = at
		}
		for i := range 600 {
			until(d.now.Add(every))
			q := prompt("unlike", 1, i, tokens*4/defaultBlockBytes)
			q.Stream = i%streams == 0
			c := d.pick(q)
			begin := free[c.Index]
			if begin.Before(d.now) {
				begin = d.now
			}
			first := begin.Add(time.Duration((requestWork + float64(c.PromptTokens)) / rate * float64(time.Second)))
			free[c.Index] = first
			e := ending{first, first.Add(time.Second), c, q.Stream}
			if !q.Stream {
				e.at = e.end
			}
			open = append(open, e)
		}
		until(d.now.Add(time.Minute))
		d.idle()
		for _, u := range d.r.Snapshot(d.now) {
			if u.Rate < 0.8*rate || u.Rate > 1.4*rate {
				t.Errorf("one stream in %d: %s is thought to prefill %.0f tokens/s, and does %.0f", streams, u.ID, u.Rate, rate)
			}
		}
	}
}
