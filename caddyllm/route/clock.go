package route

import "time"

// clock turns the times that a Router is told into durations since the first of
// them: half as long to compare and a third as long to keep. A time before the
// first is negative.
//
// Calls may come a little out of order. A time that is further back than that is
// of a clock that was set back, and time goes on from where it was: else what was
// to last a minute would last until the clock is there again. Go's own clock
// isn't set back within a process.
type clock struct {
	epoch  time.Time
	begun  bool
	latest time.Duration
}

// never is before any time that can be told.
const never = -100 * 365 * 24 * time.Hour

// outOfOrder is how far back a time may be that isn't of another clock.
const outOfOrder = time.Second

func (c *clock) at(t time.Time) time.Duration {
	if !c.begun {
		c.epoch, c.begun = t, true
	}
	since := max(t.Sub(c.epoch), never/2)
	if since < c.latest-outOfOrder {
		c.epoch = c.epoch.Add(since - c.latest)
		since = c.latest
	}
	c.latest = max(c.latest, since)
	return since
}
