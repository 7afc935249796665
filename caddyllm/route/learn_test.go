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
