package route

import "github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prefix"

// Blocks that a running request holds can't be evicted, however long it answers
// and whatever comes meanwhile: an engine puts them into the order of eviction
// when the request ends. The model of a cache knows no holders, only an order. So
// the blocks of who still runs are touched again before they could come to its
// end. Without it conversation at 90 % of the knee took 1.048 times the greedy
// oracle's mean TTFT instead of 0.992 (8 engines, two seeds): a context of 98,000
// tokens, prefilled anew beside an engine that was about to have it, delays
// hundreds of others.

// kept is a stream that had its first token, and whose blocks were touched last
// when so many had been put to its upstream.
type kept struct {
	place, generation uint32
	puts              uint64
}

// keepShare is the part of an upstream's cache that may be put there before a
// running request's blocks are touched again. What was there before doesn't count:
// a crowd on one document would have all of it touched for each of them again and
// again. A half leaves as much for what others touch meanwhile.
const keepShare = 0.5

// keep has the blocks of a request stay in the model as long as it runs. They were
// touched just now.
func (r *Router) keep(u *upstream, place uint32, f *flight) {
	if u.slot < 0 || len(f.chain) == 0 {
		return
	}
	common := 0.0 // of blocks that it computed itself it shares none
	if !f.unread {
		common = r.common(u, f)
	}
	f.alone = float32(max(f.room-max(common-float64(f.shared), 0), 0))
	u.alone += float64(f.alone)
	u.kept = append(u.kept, kept{place, f.generation, u.puts})
	r.touching, r.toTouch = u, len(u.kept)
	r.touchKept()
}

// touchKept touches the blocks of who still runs, where it is time: of each once
// at most, since there may be more than half the cache of them. Of many it leaves
// some to Settle.
func (r *Router) touchKept() {
	u := r.touching
	most := uint64(keepShare * float64(r.capacityBlocks(u)))
	first, touched := 0, 0
	for n := min(r.toTouch, len(u.kept)); first < n; first++ {
		k := u.kept[first]
		g := &r.flights[k.place]
		if g.up != u || g.generation != k.generation {
			continue // it has ended
		}
		if u.puts-k.puts <= most {
			r.toTouch = first
			break
		}
		if touched += min(len(g.chain), prefix.AtOnce); touched > prefix.AtOnce {
			break
		}
		r.index.Put(u.slot, g.chain)
		u.puts += uint64(len(g.chain))
		u.kept = append(u.kept, kept{k.place, k.generation, u.puts})
	}
	if first > 0 {
		u.kept = append(u.kept[:0], u.kept[first:]...)
	}
	if r.toTouch -= first; r.toTouch <= 0 || len(u.kept) == 0 {
		r.touching = nil
	}
}

// empty forgets all that is believed to be in an upstream's cache, what running
// requests hold included.
func (r *Router) empty(u *upstream) {
	u.kept = u.kept[:0]
	if u.slot >= 0 {
		r.index.Clear(u.slot)
	}
}
