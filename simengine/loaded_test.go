package simengine

import (
	"testing"
	"time"
)

func TestSteadyDecodeDoesNotAllocate(t *testing.T) {
	e := newEngine(t, Config{})
	for i := range uint64(256) {
		r := prompt(i, int(i), 500, 100_000)
		r.OutputBlocks = nil
		submit(t, e, 0, r)
	}
	for range 100 { // blocks and slices grow to their size
		at, _ := e.Next()
		e.Step(at)
	}
	grown := testing.AllocsPerRun(200, func() {
		at, _ := e.Next()
		e.Step(at)
	})
	// Each sequence takes a block every 16 tokens; its list doubles now and then.
	if grown >= 1 {
		t.Errorf("a step of 256 decodes allocates %v times, want less than once", grown)
	}
}

func BenchmarkDecodeStep256(b *testing.B) {
	e := newEngine(b, Config{Blocks: 1 << 24, MaxModelLen: 1 << 20})
	for i := range uint64(256) {
		submit(b, e, 0, prompt(i, int(i), 500, 1<<20))
	}
	b.ReportAllocs()
	for b.Loop() {
		at, _ := e.Next()
		e.Step(at)
	}
}

func BenchmarkLoadedEngine(b *testing.B) {
	e := newEngine(b, Config{Cost: costH100x8B})
	var id uint64
	var now time.Duration
	b.ReportAllocs()
	for b.Loop() { // one request of 4000 prompt tokens, half of it shared, and 200 of output
		id++
		r := prompt(id, int(id), 4000, 200)
		copy(r.Blocks, chain(int(id%50)+1<<30, 125))
		submit(b, e, now, r)
		now += 80 * time.Millisecond
		for at, busy := e.Next(); busy && at <= now; at, busy = e.Next() {
			e.Step(at)
		}
	}
	b.ReportMetric(float64(e.Stats().Steps)/float64(b.N), "steps/op")
}
