package rivals

import (
	"math"
	"time"
)

// treeBlock is the grain, in bytes, of what in the originals is a radix tree
// of characters.
const treeBlock = 128

// tree is what cache_aware routers share: which texts went to whom, bounded by
// characters for each upstream, and how many requests each has served.
// Generous: the bound is kept at every insertion, not by a periodic walk.
type tree struct {
	book
	chance
	texts  *lru
	served []int
}

func newTree(env Env, chars float64) tree {
	return tree{newBook(env), chance{env.Seed}, newLRU(env, int(chars)/treeBlock), make([]int, env.Upstreams)}
}

// match returns the longest match of any target as a share of the prompt, and
// who has it.
func (t *tree) match(q *Request, targets []Target) (share float64, held []int) {
	chain := q.Blocks(treeBlock)
	all := t.texts.held(chain)
	held = make([]int, len(targets))
	most := 0
	for i := range targets {
		if !targets[i].Tried {
			held[i] = all[targets[i].Upstream]
			most = max(most, held[i])
		}
	}
	return float64(most*treeBlock) / float64(max(q.Bytes, 1)), held
}

func (t *tree) take(now time.Duration, q *Request, targets []Target, best int) int {
	up := targets[best].Upstream
	t.send(now, q, up, 0, 0)
	t.texts.put(up, q.Blocks(treeBlock))
	t.served[up]++
	return best
}

func (t *tree) inFlight(up int) float64 { return float64(t.up[up].inFlight) }

// amongLongest picks among those with the longest match by score.
func (t *tree) amongLongest(targets []Target, held []int, score func(up int) float64) int {
	most := 0
	for _, h := range held {
		most = max(most, h)
	}
	longest := make([]Target, 0, len(targets))
	places := make([]int, 0, len(targets))
	for i := range targets {
		if held[i] == most && !targets[i].Tried {
			longest, places = append(longest, targets[i]), append(places, i)
		}
	}
	if len(longest) == 0 {
		return least(targets, &t.chance, t.inFlight)
	}
	return places[least(longest, &t.chance, score)]
}

// sglang is SGLang's gateway, cache_aware (cache_aware.rs, command-line
// defaults): all in balance, the holder of the longest match if it exceeds the
// threshold; else, as in versions since the change of its miss rule, the least
// loaded, or with smallest=1 the one with the smallest tree. Out of balance,
// the least loaded for everyone.
type sglang struct {
	tree
	set settings
}

func newSGLang(env Env, s settings) Policy { return &sglang{newTree(env, s["chars"]), s} }

func (p *sglang) Pick(now time.Duration, q *Request, targets []Target) int {
	low, high := math.Inf(1), 0.0
	for _, t := range targets {
		low, high = min(low, p.inFlight(t.Upstream)), max(high, p.inFlight(t.Upstream))
	}
	best := 0
	switch share, held := p.match(q, targets); {
	case high-low > p.set["abs"] && high > p.set["rel"]*low:
		best = least(targets, &p.chance, p.inFlight)
	case share > p.set["threshold"]:
		best = p.amongLongest(targets, held, func(int) float64 { return 0 })
	case p.set["smallest"] > 0:
		best = least(targets, &p.chance, func(up int) float64 { return float64(p.texts.up[up].len()) })
	default:
		best = least(targets, &p.chance, p.inFlight)
	}
	return p.take(now, q, targets, best)
}

// smg is Shepherd Model Gateway's cache_aware in its text mode
// (model_gateway/src/policies/cache_aware.rs): among the holders of the longest
// match the least loaded, unless its load exceeds rel times the mean and the
// mean by abs; then, and on a miss, the least loaded of all, of these the one
// that has served least.
type smg struct {
	tree
	set settings
}

func newSMG(env Env, s settings) Policy { return &smg{newTree(env, s["chars"]), s} }

func (p *smg) Pick(now time.Duration, q *Request, targets []Target) int {
	free := func(up int) float64 { return p.inFlight(up) + float64(p.served[up])*1e-9 }
	best := 0
	if share, held := p.match(q, targets); share > p.set["threshold"] {
		best = p.amongLongest(targets, held, p.inFlight)
		mean := float64(p.total(targets)) / float64(len(targets))
		if l := p.inFlight(targets[best].Upstream); l > p.set["rel"]*mean && l > mean+p.set["abs"] {
			best = least(targets, &p.chance, free)
		}
	} else {
		best = least(targets, &p.chance, free)
	}
	return p.take(now, q, targets, best)
}

// productionStack is the prefixaware router of vLLM's production stack
// (routing_logic.py, hashtrie.py): any of those that have the longest match of
// 128-character chunks. It has no bound, no eviction and no load term.
type productionStack struct{ tree }

func newProductionStack(env Env, _ settings) Policy {
	return &productionStack{newTree(env, math.MaxInt32)}
}

func (p *productionStack) Pick(now time.Duration, q *Request, targets []Target) int {
	_, held := p.match(q, targets)
	return p.take(now, q, targets, p.amongLongest(targets, held, func(int) float64 { return 0 }))
}
