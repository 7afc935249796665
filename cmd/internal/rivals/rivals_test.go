package rivals

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestEveryPolicyIsSound(t *testing.T) {
	for _, name := range Names() {
		b := newBench(t, name, 4)
		q := prompt("system", "a")
		// A single target, and one that failed before beside one that didn't.
		for i := range 200 {
			b.targets = []Target{{Upstream: i % 4}}
			if up := b.serve(q); up != i%4 {
				t.Errorf("%s: chose %d, which isn't offered", name, up)
			}
		}
		for i := range 200 {
			b.targets = []Target{{Upstream: i % 4, Tried: true}, {Upstream: (i + 1) % 4}}
			if up, id := b.send(q); up != (i+1)%4 {
				t.Errorf("%s: sends to %d again, where the request failed", name, up)
			} else {
				b.policy.End(b.now, id, Failed, nil)
			}
		}
		// What was never sent, or ended twice, is nothing.
		b.policy.FirstToken(b.now, 1<<40)
		b.policy.End(b.now, 1<<40, Failed, nil)
		b.policy.End(b.now, 1, Completed, nil)
		for up := range 4 {
			b.policy.Scraped(b.now, up, &Page{Waiting: 3, KVUsage: 0.5, CapacityTokens: 1e5, BlockTokens: 16})
			b.policy.Scraped(b.now, up, nil)
		}
		b.serve(q)
	}
}

func TestRandomUsesAll(t *testing.T) {
	if c := newBench(t, "random", 4).counts(4000, own); slices.Min(c) < 850 {
		t.Errorf("4000 requests go %v", c)
	}
}

func TestRoundRobinGoesRound(t *testing.T) {
	if c := newBench(t, "round_robin", 4).counts(400, own); slices.Min(c) != 100 || slices.Max(c) != 100 {
		t.Errorf("400 requests go %v", c)
	}
}

func TestLeastConnTakesTheIdle(t *testing.T) {
	b := newBench(t, "least_conn", 4)
	for up, n := range []int{3, 1, 0, 2} {
		b.keep(up, n)
	}
	if up := b.serve(own(1)); up != 2 {
		t.Errorf("chose %d, want the idle 2", up)
	}
}

// The most loaded of all is never the better of two.
func TestP2CAvoidsTheWorst(t *testing.T) {
	b := newBench(t, "p2c", 4)
	b.keep(1, 5)
	if c := b.counts(400, own); c[1] != 0 || slices.Min([]int{c[0], c[2], c[3]}) < 50 {
		t.Errorf("400 requests go %v, want none to the loaded 1", c)
	}
}

func TestPrefixHashKeepsHomeUnlessLoaded(t *testing.T) {
	b := newBench(t, "prefix_hash", 4)
	home := b.serve(prompt("a", "1"))
	for i := range 20 {
		if up := b.serve(prompt("a", fmt.Sprint(i))); up != home {
			t.Fatalf("left home %d for %d without load", home, up)
		}
	}
	b.keep(home, 40)
	if up := b.serve(prompt("a", "2")); up == home {
		t.Error("stays at a home with 40 requests of 40")
	}
	plain := newBench(t, "prefix_hash:factor=0", 4)
	plain.keep(home, 40)
	if up := plain.serve(prompt("a", "2")); up != home {
		t.Error("a plain hash leaves its home")
	}
}

func TestCHWBLWalksOn(t *testing.T) {
	b := newBench(t, "chwbl", 4)
	home := b.serve(prompt("a"))
	b.keep(home, 2) // bound: 1.25 · 3 / 4
	next := b.serve(prompt("a"))
	if next == home {
		t.Error("stays at a home above the bound")
	}
	for range 5 {
		if up := b.serve(prompt("a")); up != next {
			t.Errorf("walks to %d, then to %d", next, up)
		}
	}
}

// One imbalance anywhere ends all affinity.
func TestSGLangDropsAllAffinityOutOfBalance(t *testing.T) {
	b := newBench(t, "sglang:abs=8", 4)
	b.warm(2, prompt("a", "b"))
	b.keep(2, 3)
	if up := b.serve(prompt("a", "b")); up != 2 {
		t.Errorf("in balance it leaves the holder for %d", up)
	}
	b.keep(0, 9)
	b.keep(1, 1)
	if up := b.serve(prompt("a", "b")); up != 3 {
		t.Errorf("out of balance it chose %d, want the idle 3", up)
	}
}

func TestSGLangMiss(t *testing.T) {
	q := prompt("new", "prompt")
	b := newBench(t, "sglang:smallest=1", 2)
	b.warm(0, prompt("a", "b"))
	b.keep(1, 1)
	b.warm(1, prompt("c"))
	if up := b.serve(q); up != 0 && up != 1 {
		t.Fatal(up)
	}
	b = newBench(t, "sglang", 2)
	b.keep(1, 1)
	if up := b.serve(q); up != 0 {
		t.Errorf("a miss goes to %d, want the idle 0", up)
	}
	// The smallest tree gets it, whatever its load.
	b = newBench(t, "sglang:smallest=1", 2)
	b.warm(0, prompt("a", "b", "c", "d"))
	b.keep(1, 3)
	if up := b.serve(q); up != 1 {
		t.Errorf("a miss goes to %d, want 1, whose tree is smallest", up)
	}
}

// Only the request's own holder is looked at, and a spill makes a new holder.
func TestSMGSpillsOneAndCopies(t *testing.T) {
	b := newBench(t, "smg:abs=4", 4)
	q := prompt("a", "b")
	b.warm(2, q)
	b.keep(0, 20) // somebody else's load
	if up := b.serve(q); up != 2 {
		t.Errorf("leaves the holder for %d, though it is idle", up)
	}
	b.keep(2, 20)
	spill := b.serve(q)
	if spill != 1 && spill != 3 {
		t.Fatalf("spills to %d, want an idle one", spill)
	}
	if up := b.serve(q); up != spill {
		t.Errorf("goes to %d, want the new holder %d", up, spill)
	}
}

// One waiting request counts as much as a hundred.
func TestLLMDQueueHasNoScale(t *testing.T) {
	b := newBench(t, "llm_d", 2)
	q := prompt("a", "b", "c", "d")
	b.warm(0, q)
	if up := b.serve(q); up != 0 {
		t.Errorf("goes to %d, want the holder", up)
	}
	b.policy.Scraped(0, 0, &Page{Waiting: 1, KVUsage: 0.9})
	b.policy.Scraped(0, 1, &Page{Waiting: 0, KVUsage: 0.1})
	// 2 for the queue and 1.6 for memory outweigh 3 for the prefix.
	if up := b.serve(q); up != 1 {
		t.Errorf("goes to %d, want 1 with nobody waiting", up)
	}
	if s := b.policy.(Scraper).ScrapeEvery(0, time.Second); s != 50*time.Millisecond {
		t.Errorf("scrapes every %v", s)
	}
}

func TestLLMDStickyHoldsOn(t *testing.T) {
	b := newBench(t, "llm_d_sticky", 2)
	q := prompt("a", "b", "c", "d")
	b.warm(0, q)
	b.keep(0, 500) // 128,000 tokens: 8 s
	if up := b.serve(q); up != 0 {
		t.Errorf("leaves the holder for 8 s")
	}
	b.keep(0, 700)
	if up := b.serve(q); up != 1 {
		t.Errorf("stays with the holder for 19 s")
	}
}

// Prefill and resident blocks are priced alike.
func TestDynamoWeighsBlocks(t *testing.T) {
	b := newBench(t, "dynamo", 2)
	q := prompt("a", "b")
	b.warm(0, q)
	if up := b.serve(q); up != 0 {
		t.Errorf("goes to %d, want the holder", up)
	}
	b.keep(0, 3)
	if up := b.serve(q); up != 1 {
		t.Errorf("goes to %d, want 1: 32 blocks of prefill are less than 96 there", up)
	}
	b = newBench(t, "dynamo", 2)
	b.warm(0, q)
	b.now += 121 * time.Second
	counts := b.counts(1, func(int) *Request { return q })
	for range 30 {
		b.now += 121 * time.Second
		counts[b.serve(q)]++
	}
	if slices.Min(counts) == 0 {
		t.Errorf("after two minutes a holder is still one: %v", counts)
	}
}

func TestDynamoEventsSeesTheTruth(t *testing.T) {
	b := newBench(t, "dynamo_events", 3)
	b.truth.cached[2] = 512
	if up := b.serve(prompt("a", "b")); up != 2 {
		t.Errorf("goes to %d, want 2, which has it cached", up)
	}
}

func TestAIBrixGates(t *testing.T) {
	b := newBench(t, "aibrix", 3)
	q := prompt("a", "b")
	b.warm(1, q)
	if up := b.serve(q); up != 1 {
		t.Errorf("goes to %d, want the holder", up)
	}
	b.keep(0, 2)
	b.keep(1, 9)
	if up := b.serve(q); up != 2 {
		t.Errorf("goes to %d, want 2: more than 8 apart, only the least loaded count", up)
	}
}

func TestAIBrixIndexIsOneForAll(t *testing.T) {
	b := newBench(t, "aibrix:blocks=16", 2)
	q := prompt("a", "b") // 16 blocks
	b.warm(1, q)
	b.warm(0, prompt("c", "d"))
	p := b.policy.(*aibrix)
	if held := p.match(q.Blocks(128)); held[1] != 0 || p.order.len() != 16 {
		t.Errorf("%d blocks of the first prompt are left of %d, want none of 16", held[1], p.order.len())
	}
}

func TestPrebleExploitsAndExplores(t *testing.T) {
	b := newBench(t, "preble:balance=1e9", 3)
	b.warm(1, prompt("a", "b", "c"))
	b.warm(0, prompt("y", "y"))
	b.warm(2, prompt("x"))
	if up := b.serve(prompt("a", "b", "c", "d")); up != 1 {
		t.Errorf("exploits %d, want the holder of most", up)
	}
	if up := b.serve(prompt("new", "prompt")); up != 2 {
		t.Errorf("explores %d, want 2, which has done least", up)
	}
	b = newBench(t, "preble", 2)
	b.warm(1, prompt("a", "b", "c"))
	b.keep(0, 1)
	b.keep(1, 30)
	if up := b.serve(prompt("a", "b", "c")); up != 0 {
		t.Errorf("out of balance it goes to %d, want 0", up)
	}
}

func TestPrebleWindowEnds(t *testing.T) {
	b := newBench(t, "preble", 2)
	b.warm(0, prompt("a"))
	b.now += 4 * time.Minute
	b.serve(prompt("b"))
	if p := b.policy.(*preble); len(p.recent) != 1 || p.prefill[0]+p.prefill[1] > 1 {
		t.Errorf("%d requests are in the window, want one: %v", len(p.recent), p.prefill)
	}
}

// The first upstream that gets a shared prefix gets everything.
func TestProductionStackIgnoresLoad(t *testing.T) {
	b := newBench(t, "production_stack", 4)
	home := b.serve(prompt("system", "a"))
	b.keep(home, 50)
	for i := range 50 {
		if up := b.serve(prompt("system", fmt.Sprint(i))); up != home {
			t.Fatalf("goes to %d, want the monopoly of %d", up, home)
		}
	}
}

// A full hit makes the product small whatever the load.
func TestLMetricMultiplies(t *testing.T) {
	b := newBench(t, "lmetric", 2)
	q := prompt("a", "b", "c", "d")
	b.warm(0, q)
	// 0 · 6 requests against 1024 tokens · 1.
	_, id := b.send(q)
	b.policy.FirstToken(0, id)
	if up := b.serve(q); up != 0 {
		t.Errorf("goes to %d, want the full hit", up)
	}
	b.keep(0, 1)
	// (256 + 0)·3 against (0 + 1024)·1, then (512 + 0)·4.
	if up := b.serve(q); up != 0 {
		t.Errorf("goes to %d, want 0", up)
	}
	b.keep(0, 1)
	if up := b.serve(q); up != 1 {
		t.Errorf("goes to %d, want 1", up)
	}
}

func TestLPWLAdds(t *testing.T) {
	b := newBench(t, "lpwl", 2)
	q := prompt("a", "b", "c", "d")
	b.warm(0, q)
	b.keep(0, 3)
	if up := b.serve(q); up != 0 {
		t.Errorf("goes to %d, want 0: 768 queued tokens are less than 1024 missing", up)
	}
	b.keep(0, 2)
	if up := b.serve(q); up != 1 {
		t.Errorf("goes to %d, want 1: 1280 are more", up)
	}
}

func TestOraclesTakeTheSoonest(t *testing.T) {
	for _, name := range []string{"oracle_ttft", "oracle_rep"} {
		b := newBench(t, name, 3)
		b.truth.first = map[int]time.Duration{0: 30 * time.Millisecond, 1: 20 * time.Millisecond, 2: 40 * time.Millisecond}
		if up := b.serve(prompt("a")); up != 1 {
			t.Errorf("%s goes to %d, want 1", name, up)
		}
	}
}

// Where all prompts share a prefix, the copying oracle makes copies of it.
func TestReplicatingOracleCopies(t *testing.T) {
	q := prompt("a", "b", "c", "d")
	for name, want := range map[string]int{"oracle_ttft": 0, "oracle_rep": 1} {
		b := newBench(t, name, 2)
		b.truth.cached[0] = 1024
		b.truth.first = map[int]time.Duration{0: 5 * time.Millisecond, 1: 11 * time.Millisecond}
		up := 0
		for range 60 {
			up = b.serve(q)
		}
		if up != want {
			t.Errorf("%s goes to %d, want %d", name, up, want)
		}
	}
}

func TestLLMPrefixReturnsToTheHolder(t *testing.T) {
	b := newBench(t, "llm_prefix", 4)
	q := prompt("a", "b", "c", "d")
	home := b.serve(q)
	for range 10 {
		b.now += time.Second
		if up := b.serve(q); up != home {
			t.Errorf("goes to %d, want %d", up, home)
		}
	}
}

func TestSplitKeepsSettingsTogether(t *testing.T) {
	got := Split("llm_prefix,llm_d:queue=2,kv=2,prefix=3, random ,chwbl:key=50")
	want := []string{"llm_prefix", "llm_d:queue=2,kv=2,prefix=3", "random", "chwbl:key=50"}
	if !slices.Equal(got, want) {
		t.Errorf("Split = %q, want %q", got, want)
	}
}

// The LRU of blocks is that of a slow one.
func TestBlockListIsAnLRU(t *testing.T) {
	l := newBlockList(8)
	var slow []int32
	r := chance{3}
	for range 5000 {
		h := int32(r.below(20))
		if i := slices.Index(slow, h); i >= 0 {
			slow = slices.Delete(slow, i, i+1)
		}
		slow = append(slow, h)
		if len(slow) > l.most {
			slow = slices.Delete(slow, 0, 1)
		}
		l.touch(h)
		if r.below(500) == 0 {
			most := 4 + r.below(8)
			l.resize(most)
			if len(slow) > most {
				slow = slices.Delete(slow, 0, len(slow)-most)
			}
		}
		for h := range int32(20) {
			if l.has(h) != slices.Contains(slow, h) {
				t.Fatalf("block %d: %v, want %v", h, l.has(h), slices.Contains(slow, h))
			}
		}
	}
}

// So is a large one of blocks far apart, whose pages come and go.
func TestLargeBlockListIsAnLRU(t *testing.T) {
	const most, blocks = 900, 2000
	l := newBlockList(most)
	touched := make(map[int32]int)
	r := chance{4}
	for now := range 20_000 {
		h := int32(mix(uint64(r.below(blocks))) >> 44)
		l.touch(h)
		touched[h] = now
	}
	for h, at := range touched {
		later := 0
		for _, other := range touched {
			if other > at {
				later++
			}
		}
		if l.has(h) != (later < most) {
			t.Fatalf("a block with %d later ones: %v", later, l.has(h))
		}
	}
	if l.len() != most {
		t.Errorf("%d blocks, want %d", l.len(), most)
	}
	if pages := len(l.places.owner); pages > most+1 {
		t.Errorf("%d pages for %d blocks", pages, most)
	}
}

// What is held of a chain ends with the first block that isn't, whatever chains
// were put and fell out.
func TestHeldIsTheLeadingBlocks(t *testing.T) {
	l := newLRU(Env{Upstreams: 3}, 40)
	many := newLRU(Env{Upstreams: holdersMax + 1}, 40)
	r := chance{5}
	numbers := make(map[uint64]int32)
	chain := func() []int32 {
		h, c := uint64(0), make([]int32, 1+r.below(15))
		for i := range c {
			h = mix(h ^ uint64(1+r.below(3)))
			if _, ok := numbers[h]; !ok {
				numbers[h] = int32(len(numbers))
			}
			c[i] = numbers[h]
		}
		return c
	}
	for range 4000 {
		c := chain()
		fast, other := l.held(c), many.held(c)
		for up, list := range l.up {
			slow := 0
			for slow < len(c) && list.has(c[slow]) {
				slow++
			}
			if fast[up] != slow || other[up] != slow {
				t.Fatalf("%d of %d are held, and %d of a large number of upstreams, want %d", fast[up], len(c), other[up], slow)
			}
		}
		up, put := r.below(3), chain()
		l.put(up, put)
		many.put(up, put)
		if r.below(300) == 0 {
			most := 20 + r.below(30)
			l.resize(up, most)
			many.resize(up, most)
		}
	}
}

// A tally is a map of numbers.
func TestTallyCounts(t *testing.T) {
	var fast tally
	slow := make(map[int32]int32)
	r := chance{6}
	for range 20_000 {
		block := int32(r.below(500)) * int32(1+r.below(3))
		if n := slow[block]; n > 0 && r.below(2) == 0 {
			fast.drop(block)
			if slow[block] = n - 1; n == 1 {
				delete(slow, block)
			}
		} else {
			fast.add(block)
			slow[block] = n + 1
		}
		if fast.get(block) != slow[block] || fast.some != len(slow) {
			t.Fatalf("block %d has %d and %d, %d and %d have any", block, fast.get(block), slow[block], fast.some, len(slow))
		}
	}
}
