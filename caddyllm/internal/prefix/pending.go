package prefix

// AtOnce is how many blocks one call notes or forgets. Each takes less than a
// microsecond, as a rule, so nobody who waits for the index waits for a
// millisecond.
const AtOnce = 1 << 9

// maxJobs bounds what is put off; what comes when there are so many is let be:
// some blocks of a long prompt aren't remembered, or are for too long.
const maxJobs = 64

// job is what is left to do of a Put or Drop of a long chain: its blocks from
// one to another, the last first.
type job struct {
	upstream int
	chain    []uint64
	from, to int
	drop     bool
}

// Pending reports whether Put or Drop have put something off.
func (x *Index) Pending() bool { return len(x.jobs) > 0 }

// Work does a part of what is put off.
func (x *Index) Work() {
	if len(x.jobs) > 0 && x.step(&x.jobs[0]) {
		x.jobs = append(x.jobs[:0], x.jobs[1:]...)
	}
}

// step does a part of a job, and reports whether that was the last.
func (x *Index) step(j *job) bool {
	if !j.drop {
		j.to = min(j.to, x.lists[x.rows[j.upstream]].cap)
		if j.to <= j.from {
			// The head is used later than what is behind it, and outlives it.
			x.put(j.upstream, j.chain[:j.from])
			return true
		}
	}
	to := j.to
	j.to = max(to-x.piece, j.from)
	if j.drop {
		x.drop(j.upstream, j.chain[j.to:to])
		return j.to == j.from
	}
	x.put(j.upstream, j.chain[j.to:to])
	return false
}

func (x *Index) putOff(j job) {
	if len(x.jobs) < maxJobs {
		x.jobs = append(x.jobs, j)
	}
}

// cancel gives up what is put off of a chain, or of all that an upstream has if
// chain is nil.
func (x *Index) cancel(upstream int, chain []uint64) {
	kept := x.jobs[:0]
	for _, j := range x.jobs {
		if j.upstream != upstream || chain != nil && &j.chain[0] != &chain[0] {
			kept = append(kept, j)
		}
	}
	clear(x.jobs[len(kept):])
	x.jobs = kept
}
