package live

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Joint is the output of several requests as one, token by token in the order in
// which steps of the engine brought them, those of one step in the order of the
// batch. A late reader finds the same order.
type Joint struct {
	streams []*Stream
	news    chan struct{} // something for Next to see; holds one

	mu     sync.Mutex
	rounds []round            // what Next hasn't returned, oldest first
	taken  int                // of the oldest round
	latest []simengine.Output // by stream
	told   []int              // by stream: tokens that Next returned
	err    error              // after rounds
}

// round is what a step brought, or several steps in a row that brought the same:
// a token for each stream in who. For one that was aborted it is ^stream.
type round struct {
	rank  int
	at    time.Duration
	who   []int
	steps int
}

// Join makes one of streams that nobody reads yet, and which must not be read
// any more.
func Join(streams ...*Stream) *Joint {
	j := &Joint{
		streams: streams, news: make(chan struct{}, 1),
		latest: make([]simengine.Output, len(streams)), told: make([]int, len(streams)),
	}
	// No step may end in between: some streams would tell of it, others not.
	var drivers []*Driver
	for _, s := range streams {
		if !slices.Contains(drivers, s.driver) {
			drivers = append(drivers, s.driver)
		}
	}
	slices.SortFunc(drivers, func(a, b *Driver) int { return cmp.Compare(a.rank, b.rank) })
	for _, d := range drivers {
		d.mu.Lock()
		defer d.mu.Unlock()
	}
	for i, s := range streams {
		s.join(j, i)
	}
	return j
}

// join hands what came for s by now, and what will come, to j.
func (s *Stream) join(j *Joint, index int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joint, s.index = j, index
	if s.full {
		j.push(index, s.rank, s.pending)
	}
	if s.err != nil {
		j.fail(s.err)
	}
}

// Next waits for output. It tells of one token, or of an abort, of the stream
// index; the Output is the latest of that stream but for Tokens and
// GeneratedTokens, Finished and Reason, which are as of the token. more is
// whether there is another one at once. Errors are those of Stream.Next. One
// goroutine at a time may call it.
func (j *Joint) Next(ctx context.Context) (index int, o simengine.Output, more bool, err error) {
	for {
		if index, o, more, err, ok := j.take(); ok {
			return index, o, more, err
		}
		select {
		case <-j.news:
		case <-ctx.Done():
			return 0, simengine.Output{}, false, context.Cause(ctx)
		}
	}
}

func (j *Joint) take() (index int, o simengine.Output, more bool, err error, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.rounds) == 0 {
		return 0, o, false, j.err, j.err != nil
	}
	r := &j.rounds[0]
	index = r.who[j.taken]
	if j.taken++; j.taken == len(r.who) {
		j.taken = 0
		if r.steps--; r.steps == 0 {
			j.rounds = slices.Delete(j.rounds, 0, 1)
		}
	}
	aborted := index < 0
	if aborted {
		index = ^index
	} else {
		j.told[index]++
	}
	o = j.latest[index]
	last := o.Finished && (aborted || o.Reason != simengine.ReasonAbort) && j.told[index] == o.GeneratedTokens
	o.GeneratedTokens, o.First, o.Tokens = j.told[index], j.told[index] == 1 && !aborted, 1
	if aborted {
		o.Tokens = 0
	}
	if !last {
		o.Finished, o.Reason = false, ""
	}
	return index, o, len(j.rounds) > 0, nil, true
}

// push adds an output of a stream.
func (j *Joint) push(index, rank int, o simengine.Output) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.latest[index] = o
	for range o.Tokens - 1 { // of steps before Join, which ones is not known
		j.begin(index, rank, o.Times.At-1)
	}
	if o.Tokens > 0 {
		j.add(index, rank, o.Times.At)
	}
	if o.Reason == simengine.ReasonAbort {
		j.add(^index, rank, o.Times.At)
	}
	j.signal()
}

// add puts a token into the round of its step, which is the youngest or a new
// one.
func (j *Joint) add(who, rank int, at time.Duration) {
	if n := len(j.rounds); n > 0 {
		if r := &j.rounds[n-1]; r.at == at && r.rank == rank && r.steps == 1 {
			r.who = append(r.who, who)
			return
		}
	}
	j.begin(who, rank, at)
}

func (j *Joint) begin(who, rank int, at time.Duration) {
	j.compact()
	j.rounds = append(j.rounds, round{rank, at, []int{who}, 1})
}

// compact makes one of the two youngest rounds if they brought the same, so that
// what a late reader hasn't seen takes little memory.
func (j *Joint) compact() {
	n := len(j.rounds)
	if n < 2 {
		return
	}
	a, b := &j.rounds[n-2], &j.rounds[n-1]
	if a.rank == b.rank && slices.Equal(a.who, b.who) {
		a.steps += b.steps
		a.at = b.at
		j.rounds = j.rounds[:n-1]
	}
}

// fail ends the joint after what is there, unless a stream only came to its end.
func (j *Joint) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil && err != io.EOF {
		j.err = err
	}
	j.signal()
}

func (j *Joint) signal() {
	select {
	case j.news <- struct{}{}:
	default: // Next is told already
	}
}

// Close is Stream.Close of all.
func (j *Joint) Close() {
	for _, s := range j.streams {
		s.Close()
	}
}
