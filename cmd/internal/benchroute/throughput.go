package main

import (
	"container/heap"
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// throughput is how many decisions goroutines get of a router behind a mutex,
// as they do in Caddy, for each second that the process computes: waiting for
// the mutex is counted where it spins, and no second core is of use. steady is
// of sessions that go on, each request with its first byte and its end, which come
// when they do of these engines, between those of the others; unseen
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
		locked(func() { heap.Push(&d.jobs, d.take(d.pick(d.known[(g*31+i)%sessions]))) })
		for more := true; more; {
			locked(func() {
				j := d.due()
				if more = j != nil; more {
					d.happen(j)
					d.done(j)
				}
			})
		}
	})
	d.rest()
	unseen = perSecond(100, func(g, i int) {
		chain := make([]uint64, blocks)
		for j := range chain {
			chain[j] = uint64(g<<32|i<<16|j) * 0x9e3779b97f4a7c15
		}
		var t route.Ticket
		locked(func() {
			d.now = d.now.Add(time.Millisecond)
			t = d.pick(chain).Ticket
		})
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
