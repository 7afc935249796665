package simengine

import (
	"slices"
	"testing"
	"time"
)

// ids lists who is in the batch, in order.
func ids(sequences []*sequence) []uint64 {
	var list []uint64
	for _, s := range sequences {
		list = append(list, s.ID)
	}
	return list
}

// A small request behind one that doesn't fit waits, though there is room.
func TestHeadOfTheQueueBlocksThoseBehind(t *testing.T) {
	e := newEngine(t, Config{Blocks: 101})
	submit(t, e, 0, prompt(1, 1, 1280, 30), prompt(2, 2, 640, 1), prompt(3, 3, 16, 1))
	step(t, e)
	step(t, e)
	if s := e.Stats(); s.Running != 1 || s.Waiting != 2 {
		t.Fatalf("Stats() = %d running, %d waiting, want 1, 2", s.Running, s.Waiting)
	}
	last := drain(t, e)
	if last[3].Times.Scheduled < last[1].Times.At || last[2].Times.Scheduled > last[3].Times.Scheduled {
		t.Errorf("scheduled: second at %v, third at %v, want both after the first ended at %v",
			last[2].Times.Scheduled, last[3].Times.Scheduled, last[1].Times.At)
	}
}

// The whole prompt must fit before its first chunk is computed, though the
// budget would let only a part of it in.
func TestPromptEntersOnlyIfAllOfItFits(t *testing.T) {
	e := newEngine(t, Config{Blocks: 101, MaxNumBatchedTokens: 160})
	submit(t, e, 0, prompt(1, 1, 150, 20), prompt(2, 2, 1500, 1))
	step(t, e)
	for e.running[0].ID == 1 {
		if len(e.running) > 1 {
			t.Fatal("a prompt of 94 blocks entered with 90 free")
		}
		step(t, e)
	}
	if got := ids(e.running); !slices.Equal(got, []uint64{2}) {
		t.Errorf("running after the first ended: %v, want 2", got)
	}
}

// Before vLLM 0.19 the first chunk was enough, and a long prompt came in to be
// thrown out half-way.
func TestPromptEntersByItsFirstChunkIfAskedTo(t *testing.T) {
	e := newEngine(t, Config{Blocks: 101, MaxNumBatchedTokens: 160, AdmitByChunk: true})
	submit(t, e, 0, prompt(1, 1, 150, 20), prompt(2, 2, 1500, 1))
	step(t, e)
	step(t, e)
	if got := ids(e.running); !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("running: %v, want both, though 94 blocks are needed and 90 free", got)
	}
	if last := drain(t, e); last[2].GeneratedTokens != 1 || e.Stats().Preemptions == 0 {
		t.Errorf("second request: %+v after %d preemptions, want it to be preempted and to end", last[2], e.Stats().Preemptions)
	}
}

// Decodes come first, prefill gets what is left of the budget, and so a long
// prompt slows nobody by more than a full step.
func TestLongPromptIsComputedInChunksBesideDecodes(t *testing.T) {
	e := newEngine(t, Config{MaxNumBatchedTokens: 100})
	submit(t, e, 0, prompt(1, 1, 10, 20))
	step(t, e)
	submit(t, e, 0, prompt(2, 2, 250, 5), prompt(3, 3, 30, 5))
	var chunks [][]int
	for range 5 {
		step(t, e)
		var c []int
		for _, s := range e.running {
			c = append(c, s.chunk)
		}
		chunks = append(chunks, c)
	}
	want := [][]int{{1, 99}, {1, 99}, {1, 52, 30}, {1, 1, 1}, {1, 1, 1}}
	for i := range want {
		if !slices.Equal(chunks[i], want[i]) {
			t.Errorf("chunks of step %d = %v, want %v", i+2, chunks[i], want[i])
		}
	}
}

func TestBatchHoldsAtMostMaxNumSeqs(t *testing.T) {
	e := newEngine(t, Config{MaxNumSeqs: 2})
	submit(t, e, 0, prompt(1, 1, 10, 3), prompt(2, 2, 10, 4), prompt(3, 3, 10, 1))
	last := drain(t, e)
	if got := last[3].Times.Scheduled; got != 3*time.Millisecond {
		t.Errorf("third request scheduled at %v, want 3ms, when the first ended", got)
	}
}

func TestStepTakesWhatTheCostModelSays(t *testing.T) {
	c := Cost{Base: time.Millisecond, PrefillToken: 1e-5, DecodeSeq: 1e-4, ContextToken: 1e-6, AttentionTerm: 1e-9}
	e := newEngine(t, Config{Cost: c, MaxNumBatchedTokens: 400})
	submit(t, e, 0, prompt(1, 1, 200, 10), prompt(2, 2, 500, 10))
	step(t, e)
	var lengths []time.Duration
	begin := time.Duration(0)
	for range 3 {
		end, _ := step(t, e)
		lengths = append(lengths, end-begin)
		begin = end
	}
	want := []time.Duration{
		// 200 + 200 prompt tokens; attention 200·100 twice
		time.Millisecond + 4*time.Millisecond + 40*time.Microsecond,
		// one decode at 201 tokens, 300 prompt tokens after 200
		time.Millisecond + 100*time.Microsecond + 201*time.Microsecond + 3*time.Millisecond + 105*time.Microsecond,
		// decodes at 202 and 501
		time.Millisecond + 200*time.Microsecond + 703*time.Microsecond,
	}
	for i := range want {
		if d := lengths[i] - want[i]; d < -time.Nanosecond || d > time.Nanosecond {
			t.Errorf("step %d took %v, want %v", i+1, lengths[i], want[i])
		}
	}
}

// Who came last loses its memory to those before it, goes to the head of the
// queue, and nobody is let in during that step, though there is room for small
// ones.
func TestPreemptedRequestGoesToTheHeadOfTheQueue(t *testing.T) {
	e := newEngine(t, Config{Blocks: 11, MaxNumSeqs: 3})
	submit(t, e, 0, prompt(1, 1, 64, 40), prompt(2, 2, 80, 40))
	step(t, e)
	submit(t, e, 0, prompt(3, 3, 40, 1))
	for e.stats.Preemptions == 0 {
		step(t, e)
	}
	if got := ids(e.running); !slices.Equal(got, []uint64{1}) {
		t.Errorf("running = %v, want 1 alone", got)
	}
	if got := ids(e.waiting.all()); !slices.Equal(got, []uint64{2, 3}) {
		t.Errorf("waiting = %v, want the preempted 2, then 3", got)
	}
	if free := e.pool.Free(); free < 3 {
		t.Errorf("%d blocks free, want room for the third request", free)
	}
	last := drain(t, e)
	if got := last[2]; got.GeneratedTokens != 40 || got.CachedTokens != 0 {
		t.Errorf("preempted request ended with %d tokens, %d cached, want 40, 0", got.GeneratedTokens, got.CachedTokens)
	}
	s := e.Stats()
	if want := uint64(64 + 80 + 40); s.PrefixQueries != want || s.PromptTokens != want || s.GenerationTokens != 81 {
		t.Errorf("Stats() = %+v, want each prompt and token counted once", s)
	}
}

// What a preempted request had computed is mostly found again.
func TestPreemptedRequestFindsItsOwnBlocks(t *testing.T) {
	e := newEngine(t, Config{Blocks: 11})
	submit(t, e, 0, prompt(1, 1, 64, 20), prompt(2, 2, 80, 20))
	for e.stats.Preemptions == 0 {
		step(t, e)
	}
	for e.running[0].ID != 2 {
		step(t, e)
	}
	if s := e.running[0]; s.computed == 0 {
		t.Error("the preempted request came back with nothing computed, want some of its blocks found")
	}
}

func TestPriorityGoesBeforeArrival(t *testing.T) {
	e := newEngine(t, Config{PriorityScheduling: true, MaxNumSeqs: 1})
	order := []int{5, 0, -3, 5, 0}
	for i, p := range order {
		r := prompt(uint64(i), i, 10, 1)
		r.Priority = p
		submit(t, e, 0, r)
	}
	var got []uint64
	for {
		if _, busy := e.Next(); !busy {
			break
		}
		_, out := step(t, e)
		for _, o := range out {
			got = append(got, o.ID)
		}
	}
	if want := []uint64{2, 1, 4, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("order of completion = %v, want %v", got, want)
	}
}

// By priority the least urgent loses its memory, even if it came first and is
// the one in need; the step is then composed anew.
func TestLeastUrgentIsPreempted(t *testing.T) {
	e := newEngine(t, Config{PriorityScheduling: true, Blocks: 11})
	low, high := prompt(1, 1, 80, 40), prompt(2, 2, 75, 40)
	low.Priority = 9
	submit(t, e, 0, low, high)
	e.Step(0)
	if got := ids(e.running); !slices.Equal(got, []uint64{2, 1}) {
		t.Fatalf("running = %v, want 2, 1", got)
	}
	for e.stats.Preemptions == 0 {
		step(t, e)
	}
	if got := ids(e.running); !slices.Equal(got, []uint64{2}) {
		t.Errorf("running = %v, want the urgent 2", got)
	}
	for id, o := range drain(t, e) {
		if o.GeneratedTokens != 40 {
			t.Errorf("request %d ended with %d tokens, want 40", id, o.GeneratedTokens)
		}
	}

	// The one in need comes first in the batch and is the least urgent.
	e = newEngine(t, Config{PriorityScheduling: true, Blocks: 12})
	submit(t, e, 0, low)
	step(t, e)
	submit(t, e, 0, prompt(2, 2, 50, 40))
	for e.stats.Preemptions == 0 {
		step(t, e)
	}
	if got := e.running; len(got) != 1 || got[0].ID != 2 || got[0].chunk != 1 {
		t.Errorf("running = %v, want 2, which came later, in a step of its own", ids(got))
	}
	drain(t, e)
}
