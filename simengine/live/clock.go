package live

import (
	"math"
	"time"
)

// SpeedMax bounds Options.Speed: with it an engine's clock lasts for ten days
// of the wall clock before time.Duration ends, and then stands still.
const SpeedMax = 10_000

// clock maps the wall clock to the engine's. It stands still until started and
// while paused.
type clock struct {
	speed   float64
	factor  float64 // slower by
	started bool
	paused  bool

	wall    time.Time // when the rate last changed
	virtual time.Duration
}

// rate is seconds of the engine's per second of the wall clock's.
func (c *clock) rate() float64 {
	if !c.started || c.paused {
		return 0
	}
	return c.speed / c.factor
}

func (c *clock) now(wall time.Time) time.Duration {
	elapsed := wall.Sub(c.wall)
	switch r := c.rate(); {
	case r == 0 || elapsed <= 0:
		return c.virtual
	case r == 1: // exact, so that a timeline at the speed of life is too
		return c.virtual + elapsed
	default:
		return time.Duration(min(float64(c.virtual)+float64(elapsed)*r, math.MaxInt64/2))
	}
}

// change sets the rate from now on.
func (c *clock) change(wall time.Time, set func()) {
	c.virtual, c.wall = c.now(wall), wall
	set()
}

// waitMax keeps waits finite; who waits looks again.
const waitMax = time.Hour

// until is how long to wait for the engine's clock to show at.
func (c *clock) until(wall time.Time, at time.Duration) time.Duration {
	left := at - c.now(wall)
	r := c.rate()
	if left <= 0 {
		return 0
	}
	if r == 0 || float64(left)/r > float64(waitMax) {
		return waitMax
	}
	return time.Duration(math.Ceil(float64(left) / r))
}

// between returns x if it lies in lo to hi, the nearer end if not, and 1 for
// what is no number or not above 0.
func between(lo, x, hi float64) float64 {
	if math.IsNaN(x) || x <= 0 {
		return 1
	}
	return min(max(x, lo), hi)
}
