package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
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

// desk is a router with a full index, and prompts for it.
type desk struct {
	row     row
	router  *route.Router
	targets []route.Target
	known   [][]uint64 // chains that the index holds
	rng     *rand.Rand
	now     time.Time
	floor   map[uint64]uint64
}

func newDesk(r row) *desk {
	d := &desk{
		row:    r,
		router: route.New(route.Options{BlockBytes: blockBytes}),
		rng:    rand.New(rand.NewPCG(1, 2)),
		now:    time.Unix(1_000_000, 0),
		floor:  make(map[uint64]uint64),
	}
	tokens := float64(r.entries / r.upstreams * blockBytes / 4)
	for i := range r.upstreams {
		id := fmt.Sprintf("engine%d:8000", i)
		d.targets = append(d.targets, route.Target{ID: id})
		d.router.Scraped(d.now, id, &route.Load{
			Waiting: route.Known(0), Running: route.Known(0), KVUsage: route.Known(0), CapacityTokens: route.Known(tokens),
		})
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
	for range 2 * picks { // the window of recent requests is full, and what is kept for reuse is there
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

func (d *desk) pick(chain []uint64) route.Ticket {
	d.now = d.now.Add(time.Millisecond)
	c, _ := d.router.Pick(d.now, &route.Request{Chain: chain, Bytes: len(chain) * blockBytes, Stream: true}, d.targets)
	return c.Ticket
}

func (d *desk) release(t route.Ticket) {
	d.router.FirstByte(d.now, t)
	d.router.Done(d.now, t, route.Completed, nil)
}

func (d *desk) serve(chain []uint64) { d.release(d.pick(chain)) }

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
	tickets := make([]route.Ticket, picks)
	var picked, released, floored []time.Duration
	for range rounds {
		for i := range chains {
			chains[i] = d.next()
		}
		// Eight at a time are in flight, as they would be.
		const flight = 8
		var p, r time.Duration
		for i := 0; i < picks; i += flight {
			p += onThread(func() {
				for j := i; j < i+flight; j++ {
					tickets[j] = d.pick(chains[j])
				}
			})
			r += onThread(func() {
				for j := i; j < i+flight; j++ {
					d.release(tickets[j])
				}
			})
		}
		picked, released = append(picked, p/picks), append(released, r/picks)
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

// throughput is how many decisions goroutines get of a router behind a mutex,
// as they do in Caddy, for each second that the process computes: waiting for
// the mutex is counted where it spins, and no second core is of use. steady is
// of sessions that go on, each request with its first byte and its end; unseen
// is of prompts that nobody has seen and that are cancelled at once, so that all
// of their blocks are added and removed again.
func throughput() (steady, unseen float64) {
	d := newDesk(row{upstreams: 8, entries: 1_000_000})
	defer d.close()
	var mu sync.Mutex
	locked := func(f func()) {
		mu.Lock()
		defer mu.Unlock()
		f()
	}
	steady = perSecond(1000, func(g, i int) {
		var t route.Ticket
		locked(func() { t = d.pick(d.known[(g*31+i)%sessions]) })
		locked(func() { d.router.FirstByte(d.now, t) })
		locked(func() { d.router.Done(d.now, t, route.Completed, nil) })
	})
	unseen = perSecond(100, func(g, i int) {
		chain := make([]uint64, blocks)
		for j := range chain {
			chain[j] = uint64(g<<32|i<<16|j) * 0x9e3779b97f4a7c15
		}
		var t route.Ticket
		locked(func() { t = d.pick(chain) })
		locked(func() { d.router.Done(d.now, t, route.Cancelled, nil) })
	})
	return steady, unseen
}

// perSecond is how often goroutines do something for each second of CPU time.
func perSecond(each int, do func(goroutine, i int)) float64 {
	var all sync.WaitGroup
	begin := processTime()
	for g := range goroutines {
		all.Go(func() {
			for i := range each {
				do(g, i)
			}
		})
	}
	all.Wait()
	return float64(goroutines*each) / (processTime() - begin).Seconds()
}
