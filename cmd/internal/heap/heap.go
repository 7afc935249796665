// Package heap sets the garbage collector's pace for a process that serves.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Slack is how much the heap may grow between collections, in bytes. Go's own
// rule is as much again as is alive: that is a collection for each 4 MiB of
// garbage while a server is idle, and as much garbage as data once it is full.
const Slack = 64 << 20

// Bounds of the pace: at least a quarter of what is alive, so that a very large
// heap isn't collected all the time.
const (
	percentMin = 25
	percentMax = 1600
)

// Pace keeps the collector to Slack from now on, whatever is alive: it looks
// after each collection. It must be called once.
func Pace() {
	debug.SetGCPercent(percentMax)
	watch(0)
}

// beat is garbage; its end tells that a collection took place.
type beat struct{ _ [16]byte }

func watch(percent int) {
	runtime.SetFinalizer(new(beat), func(*beat) {
		samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
		metrics.Read(samples)
		wanted := percentOf(samples[0].Value.Uint64() + samples[1].Value.Uint64())
		// To set it stops the world; a few percent aren't worth that.
		if wanted < percent*9/10 || wanted > percent*11/10 {
			debug.SetGCPercent(wanted)
			percent = wanted
		}
		watch(percent)
	})
}

// percentOf is the pace for so many bytes that are alive.
func percentOf(alive uint64) int {
	return int(min(max(100*Slack/max(alive, 1), percentMin), percentMax))
}
