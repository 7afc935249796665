package simengine

// ring is a list of eager sequences in batch order, and a number of lazy ones.
type ring struct {
	first, last *sequence
	eager, lazy int
}

func (r *ring) count() int { return r.eager + r.lazy }

// insert puts s where it belongs, which is nearly always at the end.
func (r *ring) insert(s *sequence) {
	r.eager++
	if r.last != nil && r.last.entered < s.entered {
		r.last.behind, r.last = s, s
		return
	}
	at := &r.first
	for *at != nil && (*at).entered < s.entered {
		at = &(*at).behind
	}
	s.behind, *at = *at, s
	if s.behind == nil {
		r.last = s
	}
}

func (r *ring) remove(s *sequence) {
	r.eager--
	var before *sequence
	at := &r.first
	for *at != s {
		before = *at
		at = &before.behind
	}
	*at = s.behind
	if r.last == s {
		r.last = before
	}
	s.behind = nil
}
