package route

import "time"

// A response in the background is answered at once, with a promise: the engine
// works on it afterwards, and its client asks for it by other requests. Nothing
// tells when it ends. Its reservation is kept for as long as an answer takes on
// average, or as what its upstream has to prefill should take if that is longer, and
// then let go as if it had come to its end. Meanwhile it is taken to be answered as requests that
// aren't streamed are, once their prefill must be done. Nothing is learned of it.

// late is a reservation whose answer came before the work.
type late struct {
	place, generation uint32
	until             time.Duration
}

// maxLate bounds how many are kept; of more, the first are let go early. It is
// what an engine takes at once by default in vLLM (1,024), for four of them.
const maxLate = 4096

// leave keeps a reservation for as long as it should be worked on.
func (r *Router) leave(now time.Duration, place uint32, f *flight) {
	f.generation++ // its caller has released it
	ahead := f.up.queued / f.up.rate
	if f.decoding {
		ahead = 0
	}
	until := now + seconds(max(r.answers.residence, ahead))
	if len(r.late) == maxLate {
		r.endFirst(now)
	}
	r.late = append(r.late, late{place, f.generation, until})
}

// endLate lets go of those that should be done. They are looked at as they were
// accepted: one that takes longer than those behind it keeps them for as long.
func (r *Router) endLate(now time.Duration) {
	for len(r.late) > 0 && now >= r.late[0].until {
		r.endFirst(now)
	}
}

func (r *Router) endFirst(now time.Duration) {
	l := r.late[0]
	r.late = append(r.late[:0], r.late[1:]...)
	if f := &r.flights[l.place]; f.up != nil && f.generation == l.generation {
		r.release(now, l.place, f, Completed)
	}
}
