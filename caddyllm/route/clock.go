package route

import "time"

// clock turns the times that a Router is told into durations since the first of
// them: half as long to compare and a third as long to keep. A time before the
// first is negative.
type clock struct {
	epoch  time.Time
	begun  bool
	latest time.Duration
}

// never is before any time that can be told.
const never = -100 * 365 * 24 * time.Hour

func (c *clock) at(t time.Time) time.Duration {
	if !c.begun {
		c.epoch, c.begun = t, true
	}
	return max(t.Sub(c.epoch), never/2)
}
