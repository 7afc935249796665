package main

import (
	"container/heap"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// engines answer what the router sends them, in a time of their own: each takes
// its prompts as they came, needs as long for one as it misses tokens, and answers
// for a while. Without that the router would learn speeds that no engine has, and
// choose by them as it never does for users.
type engines struct {
	router  *route.Router
	targets []route.Target
	now     time.Time
	coming  time.Time   // when the next request comes
	tokens  float64     // of each one's KV cache
	free    []time.Time // when it has prefilled all that it was sent
	waiting []int
	running []int
	paged   time.Time // when the next page is read
	pages   int       // how many were read
	jobs    jobs
	unused  []*job
	spent   time.Duration // CPU time of first bytes and ends
}

const (
	speed     = 10_000.0 // prefill tokens a second, as the router takes it to be at first
	eachWork  = 1000.0   // what a request costs beyond its tokens
	answering = time.Second
	pageEvery = time.Second // of each engine, as the gateway reads them by default
	// load is the part of their time for which the engines prefill.
	load = 0.5
)

// job is a request on an engine.
type job struct {
	due    time.Time // its first token, or its end
	ticket route.Ticket
	engine int
	begun  bool // it had its first token
	ended  bool
}

func newEngines(n int, tokens float64, router *route.Router, targets []route.Target) engines {
	begin := time.Unix(1_000_000, 0)
	return engines{
		router: router, targets: targets, tokens: tokens, now: begin, coming: begin, paged: begin,
		free: make([]time.Time, n), waiting: make([]int, n), running: make([]int, n),
	}
}

// take gives a choice to its engine. The next request comes so much later as the load
// asks for.
func (e *engines) take(c route.Choice) *job {
	var j *job
	if n := len(e.unused); n > 0 {
		j, e.unused = e.unused[n-1], e.unused[:n-1]
	} else {
		j = new(job)
	}
	begin := e.now
	if e.free[c.Index].After(begin) {
		begin = e.free[c.Index]
	}
	took := time.Duration((eachWork + float64(max(c.PromptTokens-c.MatchedTokens, blockBytes/4))) / speed * float64(time.Second))
	e.free[c.Index] = begin.Add(took)
	e.waiting[c.Index]++
	*j = job{due: begin.Add(took), ticket: c.Ticket, engine: c.Index}
	e.coming = e.coming.Add(time.Duration(float64(took) / load / float64(len(e.targets))))
	return j
}

// first is a request's first token.
func (e *engines) first(j *job) {
	e.router.FirstByte(e.now, j.ticket)
	for e.router.Unsettled() {
		e.router.Settle()
	}
	e.waiting[j.engine]--
	e.running[j.engine]++
	j.begun, j.due = true, j.due.Add(answering)
}

// end is that of a request that had its first token.
func (e *engines) end(j *job) {
	e.router.Done(e.now, j.ticket, route.Completed, nil)
	e.running[j.engine]--
	j.ended = true
}

// catchUp has all happen that is due: first tokens, ends and pages.
func (e *engines) catchUp() {
	for j := e.due(); j != nil; j = e.due() {
		begin := threadTime()
		e.happen(j)
		e.spent += threadTime() - begin - clockTakes
		e.done(j)
	}
}

// rest has no further request come until nothing is left to do.
func (e *engines) rest() {
	for len(e.jobs) > 0 {
		e.coming = e.jobs[0].due
		e.catchUp()
	}
}

// due lets time go by until the first that is due, a first token or an end, and
// reads the pages before it. It returns nil where the next request comes before.
func (e *engines) due() *job {
	if len(e.jobs) == 0 || e.jobs[0].due.After(e.coming) {
		e.readPages(e.coming)
		e.now = e.coming
		return nil
	}
	j := e.jobs[0]
	e.readPages(j.due)
	e.now = j.due
	return j
}

// happen has it happen.
func (e *engines) happen(j *job) {
	if j.begun {
		e.end(j)
	} else {
		e.first(j)
	}
}

// done puts it where it is due next.
func (e *engines) done(j *job) {
	if j.ended {
		heap.Pop(&e.jobs)
		e.unused = append(e.unused, j)
	} else {
		heap.Fix(&e.jobs, 0)
	}
}

// readPages reads the pages that are due, of one engine after the other.
func (e *engines) readPages(until time.Time) {
	for ; !e.paged.After(until); e.paged = e.paged.Add(pageEvery / time.Duration(len(e.targets))) {
		i := e.pages % len(e.targets)
		e.pages++
		e.router.Scraped(e.paged, e.targets[i].ID, &route.Load{
			Waiting: route.Known(float64(e.waiting[i])), Running: route.Known(float64(e.running[i])),
			KVUsage:        route.Known(min(float64(e.running[i]*blocks*blockBytes/4)/e.tokens, 1)),
			CapacityTokens: route.Known(e.tokens),
		})
	}
}

// jobs are a heap by what is due first.
type jobs []*job

func (j jobs) Len() int           { return len(j) }
func (j jobs) Less(a, b int) bool { return j[a].due.Before(j[b].due) }
func (j jobs) Swap(a, b int)      { j[a], j[b] = j[b], j[a] }
func (j *jobs) Push(x any)        { *j = append(*j, x.(*job)) }
func (j *jobs) Pop() any {
	last := len(*j) - 1
	x := (*j)[last]
	*j = (*j)[:last]
	return x
}
