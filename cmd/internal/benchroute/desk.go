package main

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

const (
	blocks     = 128
	blockBytes = 256
	sessions   = 64
)

// desk is a router with a full index, engines that it sends to, and prompts for it.
type desk struct {
	engines
	row   row
	known [][]uint64 // chains that the index holds
	rng   *rand.Rand
	floor map[uint64]uint64
}

func newDesk(r row) *desk {
	d := &desk{row: r, rng: rand.New(rand.NewPCG(1, 2)), floor: make(map[uint64]uint64)}
	var targets []route.Target
	for i := range r.upstreams {
		targets = append(targets, route.Target{ID: fmt.Sprintf("engine%d:8000", i)})
	}
	tokens := float64(r.entries / r.upstreams * blockBytes / 4)
	d.engines = newEngines(r.upstreams, tokens, route.New(route.Options{BlockBytes: blockBytes}), targets)
	for range r.upstreams { // the first page of each
		d.readPages(d.paged)
	}
	for range r.entries / blocks {
		chain := make([]uint64, blocks)
		for i := range chain {
			chain[i] = d.rng.Uint64()
		}
		d.known = append(d.known, chain)
		d.serve(chain)
		for _, h := range chain {
			d.floor[h] |= 1
		}
	}
	for range settling { // what is popular is where it is asked for, and what is kept for reuse is there
		d.serve(d.next())
	}
	return d
}

func (d *desk) close() { d.router, d.known, d.floor = nil, nil, nil; runtime.GC() }

// next is a chain of a session that goes on, or of any that is known.
func (d *desk) next() []uint64 {
	if d.row.cold {
		return d.known[d.rng.IntN(len(d.known))]
	}
	return d.known[d.rng.IntN(min(sessions, len(d.known)))]
}

func (d *desk) pick(chain []uint64) route.Choice {
	c, _ := d.router.Pick(d.now, &route.Request{Chain: chain, Bytes: len(chain) * blockBytes, Stream: true}, d.targets)
	return c
}

// serve has a prompt sent, after all that is due by now. It returns the CPU time of
// the decision.
func (d *desk) serve(chain []uint64) time.Duration {
	d.catchUp()
	begin := threadTime()
	c := d.pick(chain)
	took := threadTime() - begin - clockTakes
	heap.Push(&d.jobs, d.take(c))
	return took
}

func (d *desk) held() int {
	n := 0
	for _, u := range d.router.Snapshot(d.now) {
		n += u.Entries
	}
	return n
}

// measure returns what Pick takes, what first byte and end take together, and
// what the map takes.
func (d *desk) measure() (pick, release, floor time.Duration) {
	chains := make([][]uint64, picks)
	var picked, released, floored []time.Duration
	for range rounds {
		for i := range chains {
			chains[i] = d.next()
		}
		var p time.Duration
		d.spent = 0
		onThread(func() {
			for _, chain := range chains {
				p += d.serve(chain)
			}
		})
		picked, released = append(picked, p/picks), append(released, d.spent/picks)
		f := onThread(func() {
			for _, chain := range chains {
				for _, h := range chain {
					d.floor[h] |= 2
				}
			}
		})
		floored = append(floored, f/picks)
	}
	return median(picked), median(released), median(floored)
}

func (d *desk) allocs() float64 {
	return testing.AllocsPerRun(1000, func() { d.serve(d.next()) })
}

// onThread is the CPU time of this thread in f.
func onThread(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadTime()
	f()
	return threadTime() - begin
}

// clockTakes is what is measured where nothing is done.
var clockTakes = func() time.Duration {
	var all []time.Duration
	onThread(func() {
		for range 1000 {
			begin := threadTime()
			all = append(all, threadTime()-begin)
		}
	})
	return median(all)
}()

func threadTime() time.Duration  { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }
func processTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic(err) // these clocks are there on any Linux
	}
	return time.Duration(ts.Nano())
}

// growth is how much longer a decision takes that finds 128 blocks than one
// that finds 16 of the same number.
func growth() float64 {
	d := newDesk(row{upstreams: 8, entries: 1_000_000})
	defer d.close()
	look := func(found int) time.Duration {
		var all []time.Duration
		for range rounds {
			chains := make([][]uint64, picks)
			for i := range chains {
				chains[i] = append([]uint64(nil), d.next()...)
				for j := found; j < blocks; j++ {
					chains[i][j] = d.rng.Uint64()
				}
			}
			q := route.Request{Bytes: blocks * blockBytes, Stream: true}
			all = append(all, onThread(func() {
				for _, chain := range chains {
					q.Chain = chain
					d.router.Explain(d.now, &q, d.targets)
				}
			}))
		}
		return median(all)
	}
	few, many := look(16), look(128)
	return float64(many) / float64(few)
}

// perEntry is the memory that a full index takes for each entry.
func perEntry() float64 {
	const entries = 10_000_000
	var before, after runtime.MemStats
	r := row{upstreams: 8, entries: entries}
	runtime.GC()
	runtime.ReadMemStats(&before)
	d := newDesk(r)
	d.known, d.floor = nil, nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := d.held()
	d.close()
	return float64(after.HeapAlloc-before.HeapAlloc) / float64(held)
}
