package route

// popularity counts how many of the last requests carry a block, in a table
// that blocks share by hash: a collision makes a block look a little more
// popular than it is.
type popularity struct {
	counts [1 << 14]uint16
	window [][]uint64 // the last requests' first blocks, a ring
	next   int
}

const (
	// windowPerUpstream is how many recent requests are looked at for each
	// upstream: the window that decision replays were best with.
	windowPerUpstream = 25
	windowMax         = 4096
	// popularBlocks is how many leading blocks of a prompt can be popular:
	// what many prompts share is at their beginning.
	popularBlocks = 128
)

func slotOf(hash uint64) uint64 { return hash >> 50 }

// note counts a request among n upstreams.
func (p *popularity) note(chain []uint64, n int) {
	size := min(windowPerUpstream*n, windowMax)
	for len(p.window) > size { // upstreams went away
		last := len(p.window) - 1
		p.forget(p.window[last])
		p.window = p.window[:last]
	}
	if p.next >= size {
		p.next = 0
	}
	if p.next == len(p.window) {
		p.window = append(p.window, nil)
	}
	p.forget(p.window[p.next])
	chain = chain[:min(len(chain), popularBlocks)]
	p.window[p.next] = append(p.window[p.next][:0], chain...)
	for _, h := range chain {
		p.counts[slotOf(h)]++
	}
	p.next++
}

func (p *popularity) forget(chain []uint64) {
	for _, h := range chain {
		p.counts[slotOf(h)]--
	}
}

// share is the part of recent requests that carry a block.
func (p *popularity) share(hash uint64) float64 {
	if len(p.window) == 0 {
		return 0
	}
	return float64(p.counts[slotOf(hash)]) / float64(len(p.window))
}
