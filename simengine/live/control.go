package live

import (
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// change sets something of the clock.
func (d *Driver) change(set func()) {
	d.mu.Lock()
	d.clock.change(time.Now(), set)
	d.mu.Unlock()
	d.signal()
}

// ResetPrefixCache is Engine.ResetPrefixCache.
func (d *Driver) ResetPrefixCache() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.engine.ResetPrefixCache()
}

// Sleep is Engine.Sleep: the engine finishes its step and holds, while its clock
// runs on.
func (d *Driver) Sleep(level int, mode simengine.PauseMode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.signal()
	return d.engine.Sleep(d.clock.now(time.Now()), level, mode)
}

// Wake is Engine.Wake.
func (d *Driver) Wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.engine.Wake(d.clock.now(time.Now()))
	d.signal()
}

// Asleep is Engine.Asleep.
func (d *Driver) Asleep() (level int, asleep bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.engine.Asleep()
}

// Pause stops the engine's clock, and with it everything: requests are taken in
// and wait. It is idempotent.
func (d *Driver) Pause() { d.change(func() { d.clock.paused = true }) }

// Resume lets the clock run on from where it stood. It is idempotent.
func (d *Driver) Resume() { d.change(func() { d.clock.paused = false }) }

// factorMax bounds SlowBy on both sides.
const factorMax = 1e6

// SlowBy makes the engine's clock run at Speed/factor from now on, whatever an
// earlier call said. A factor that isn't above 0 is taken for 1.
func (d *Driver) SlowBy(factor float64) {
	d.change(func() { d.clock.factor = between(1/factorMax, factor, factorMax) })
}

// Restart replaces the engine by a fresh one of the same configuration: caches
// and counters are empty, streams fail with ErrRestarted. The clock runs on.
func (d *Driver) Restart() {
	d.mu.Lock()
	defer d.mu.Unlock()
	fresh, err := simengine.New(d.engine.Config())
	if err != nil {
		return // not with a configuration that an engine runs on
	}
	d.engine = fresh
	d.failAll(ErrRestarted)
}
