package simengine

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// twin is vLLM's scheduler and block pool as its rules read, with nothing clever:
// one queue of free blocks, a list for each hash, and every waiting request looked
// at anew in every step.
type twin struct {
	cfg              Config
	free             []*twinBlock // in the order in which they are taken
	cached           map[uint64][]*twinBlock
	running, waiting []*twinRequest
	cancelled        []*twinRequest
	order            int
}

type twinBlock struct {
	hash   uint64
	hashed bool
	refs   int
}

type twinRequest struct {
	Request
	order                  int
	known, computed, chunk int
	cached                 int
	blocks                 []*twinBlock
	hashes                 []uint64
	looked, over           bool
}

func newTwin(cfg Config) *twin {
	tw := &twin{cfg: cfg, cached: make(map[uint64][]*twinBlock)}
	for range cfg.Blocks - 1 {
		tw.free = append(tw.free, &twinBlock{})
	}
	return tw
}

func (tw *twin) arrive(r Request) *twinRequest {
	s := &twinRequest{Request: r, order: tw.order, known: r.PromptTokens, hashes: slices.Concat(r.Blocks, r.OutputBlocks)}
	tw.order++
	tw.waiting = append(tw.waiting, s)
	tw.sort()
	return s
}

func (s *twinRequest) less(o *twinRequest) int {
	return cmp.Or(cmp.Compare(s.Priority, o.Priority), cmp.Compare(s.order, o.order))
}

func (tw *twin) sort() {
	if tw.cfg.PriorityScheduling {
		slices.SortStableFunc(tw.waiting, (*twinRequest).less)
	}
}

// step ends the step in progress and composes the next.
func (tw *twin) step() {
	for _, s := range tw.running {
		s.computed += s.chunk
		// Who was cancelled during its last step leaves with the cancelled: vLLM's
		// versions differ in whether aborts or outputs come first.
		if s.chunk > 0 && s.computed >= s.known && !slices.Contains(tw.cancelled, s) {
			if s.known++; s.known == s.PromptTokens+s.OutputTokens {
				s.over = true
				tw.release(s)
			}
		}
		s.chunk = 0
	}
	for _, s := range tw.cancelled {
		if !s.over {
			s.over = true
			tw.release(s)
		}
	}
	tw.cancelled = nil
	over := func(s *twinRequest) bool { return s.over }
	tw.running, tw.waiting = slices.DeleteFunc(tw.running, over), slices.DeleteFunc(tw.waiting, over)
	for !tw.schedule() { // a step of nobody takes no time
	}
}

// schedule is false if the step is empty since the only ones in it were thrown
// out.
func (tw *twin) schedule() bool {
	budget, bound := tw.cfg.MaxNumBatchedTokens, MaxTokens
	all := len(tw.running) + len(tw.waiting)
	if tw.cfg.LongPrefillTokens > 0 && (all > 1 || tw.cfg.LongPrefillAlone) {
		bound = tw.cfg.LongPrefillTokens
		if tw.cfg.LongPrefillAdaptive {
			bound = max(bound, tw.cfg.MaxNumBatchedTokens/max(1, all))
		}
	}
	preempted := false
running:
	for i := 0; i < len(tw.running) && budget > 0; i++ {
		s := tw.running[i]
		chunk := min(s.known-s.computed, bound, budget)
		for !tw.allocate(s, chunk) {
			victim := tw.running[len(tw.running)-1]
			if tw.cfg.PriorityScheduling {
				victim = slices.MaxFunc(tw.running, (*twinRequest).less)
			}
			at := slices.Index(tw.running, victim)
			tw.running = slices.Delete(tw.running, at, at+1)
			if at < i {
				i--
			}
			budget += victim.chunk
			victim.chunk, victim.computed = 0, 0
			tw.release(victim)
			tw.waiting = slices.Insert(tw.waiting, 0, victim)
			tw.sort()
			preempted = true
			if victim == s {
				break running
			}
		}
		s.chunk = chunk
		budget -= chunk
	}
	if !preempted {
		budget = tw.admit(budget, bound)
	}
	return budget < tw.cfg.MaxNumBatchedTokens || !preempted
}

func (tw *twin) admit(budget, bound int) int {
	adapters := make(map[string]bool)
	for _, s := range tw.running {
		if s.Adapter != "" && s.chunk > 0 {
			adapters[s.Adapter] = true
		}
	}
	for i := 0; i < len(tw.waiting) && budget > 0 && len(tw.running) < tw.cfg.MaxNumSeqs; {
		s := tw.waiting[i]
		if tw.cfg.MaxLoRAs > 0 && s.Adapter != "" && len(adapters) == tw.cfg.MaxLoRAs && !adapters[s.Adapter] {
			i++
			continue
		}
		hits := tw.lookup(s)
		size := tw.cfg.BlockSize
		chunk := min(s.known-len(hits)*size, bound, budget)
		fit := s.known
		if tw.cfg.AdmitByChunk {
			fit = len(hits)*size + min(bound, budget)
			fit = min(fit, s.known)
		}
		need := (fit+size-1)/size - len(hits)
		for _, b := range hits {
			if b.refs == 0 {
				need++
			}
		}
		if len(tw.running) > 0 {
			need += int(tw.cfg.Watermark * float64(tw.cfg.Blocks))
		}
		if need > len(tw.free) {
			break
		}
		for _, b := range hits {
			if b.refs++; b.refs == 1 {
				tw.free = slices.DeleteFunc(tw.free, func(f *twinBlock) bool { return f == b })
			}
		}
		s.blocks, s.computed = hits, len(hits)*size
		if !tw.allocate(s, chunk) {
			panic("what fits isn't there")
		}
		if !s.looked {
			s.looked, s.cached = true, s.computed
		}
		s.chunk = chunk
		budget -= chunk
		if s.Adapter != "" {
			adapters[s.Adapter] = true
		}
		tw.waiting = slices.Delete(tw.waiting, i, i+1)
		tw.running = append(tw.running, s)
	}
	return budget
}

// lookup finds the longest cached prefix; the last token is computed in any case.
func (tw *twin) lookup(s *twinRequest) (found []*twinBlock) {
	if tw.cfg.DisablePrefixCaching || s.SkipPrefixCache {
		return nil
	}
	for _, h := range s.hashes[:min(len(s.hashes), (s.known-1)/tw.cfg.BlockSize)] {
		list := tw.cached[h]
		if len(list) == 0 {
			break
		}
		found = append(found, list[0])
	}
	return found
}

func (tw *twin) allocate(s *twinRequest, chunk int) bool {
	size := tw.cfg.BlockSize
	need := (s.computed+chunk+size-1)/size - len(s.blocks)
	if need > len(tw.free) {
		return false
	}
	for range need {
		b := tw.free[0]
		tw.free = tw.free[1:]
		tw.forget(b)
		b.refs = 1
		s.blocks = append(s.blocks, b)
	}
	if tw.cfg.DisablePrefixCaching {
		return true
	}
	for i, b := range s.blocks[:min((s.computed+chunk)/size, len(s.hashes))] {
		if !b.hashed {
			b.hash, b.hashed = s.hashes[i], true
			tw.cached[b.hash] = append(tw.cached[b.hash], b)
		}
	}
	return true
}

func (tw *twin) forget(b *twinBlock) {
	if b.hashed {
		tw.cached[b.hash] = slices.DeleteFunc(tw.cached[b.hash], func(c *twinBlock) bool { return c == b })
		b.hashed = false
	}
}

// release gives blocks back, the tail first: with a hash to the end of the queue,
// without to its head.
func (tw *twin) release(s *twinRequest) {
	for _, b := range slices.Backward(s.blocks) {
		if b.refs--; b.refs > 0 {
			continue
		}
		if b.hashed {
			tw.free = append(tw.free, b)
		} else {
			tw.free = slices.Insert(tw.free, 0, b)
		}
	}
	s.blocks = nil
}

// alike tells the first thing in which the engine differs from its twin.
func (tw *twin) alike(e *Engine) error {
	same := func(s *sequence, o *twinRequest) bool {
		return s.ID == o.ID && s.chunk == o.chunk && s.computed == o.computed && s.cached == o.cached
	}
	if slices.EqualFunc(e.running, tw.running, same) && slices.EqualFunc(e.waiting.all(), tw.waiting, same) && e.pool.Free() == len(tw.free) {
		return nil
	}
	var ours, theirs []string
	for _, s := range slices.Concat(e.running, e.waiting.all()) {
		ours = append(ours, fmt.Sprintf("%d: %d+%d, %d cached", s.ID, s.computed, s.chunk, s.cached))
	}
	for _, s := range slices.Concat(tw.running, tw.waiting) {
		theirs = append(theirs, fmt.Sprintf("%d: %d+%d, %d cached", s.ID, s.computed, s.chunk, s.cached))
	}
	return fmt.Errorf("%d run, %d free: %q\nits twin: %d run, %d free: %q",
		len(e.running), e.pool.Free(), ours, len(tw.running), len(tw.free), theirs)
}

// twins lives the traffic with both.
func (tr traffic) twins(t testing.TB) (preemptions uint64) {
	t.Helper()
	tr.config.AsyncScheduling = false
	e := newEngine(t, tr.config)
	tw := newTwin(e.Config())
	known := make(map[uint64]*twinRequest)
	var coming []event // arrivals and cancels that no step has seen
	events := tr.events
	for {
		at, busy := e.Next()
		for len(events) > 0 && (!busy || events[0].at <= at) {
			ev := events[0]
			if events = events[1:]; ev.submit != nil {
				submit(t, e, ev.at, *ev.submit)
			} else {
				e.Cancel(ev.at, ev.cancel)
			}
			coming = append(coming, ev)
			at, busy = e.Next()
		}
		if !busy {
			return e.Stats().Preemptions
		}
		e.Step(at)
		// Cancels are seen before arrivals, whose way takes longer.
		coming = slices.DeleteFunc(coming, func(ev event) bool {
			if ev.submit != nil || ev.at > at {
				return false
			}
			if s := known[ev.cancel]; s != nil {
				tw.cancelled = append(tw.cancelled, s)
			} else {
				known[ev.cancel] = &twinRequest{over: true}
			}
			return true
		})
		var arrived []event
		coming = slices.DeleteFunc(coming, func(ev event) bool {
			due := ev.submit != nil && ev.at+tr.config.Cost.RequestOverhead <= at
			if due {
				arrived = append(arrived, ev)
			}
			return due
		})
		for _, ev := range arrived {
			if known[ev.submit.ID] == nil {
				known[ev.submit.ID] = tw.arrive(*ev.submit)
			}
		}
		tw.step()
		if err := tw.alike(e); err != nil {
			t.Fatalf("at %v, %+v: %v", at, tr.config, err)
		}
	}
}

// The engine schedules, evicts, finds and throws out as the rules say, step by
// step.
func TestEngineIsLikeItsTwin(t *testing.T) {
	preemptions := uint64(0)
	for seed := range uint64(56) {
		random := rand.New(rand.NewPCG(seed, 11))
		tr := randomTraffic(random)
		switch seed % 7 { // corners that chance seldom finds
		case 1:
			tr.config.BlockSize = 1
			tr = tr.rehashed(4)
		case 2:
			tr.config.MaxNumBatchedTokens = tr.config.BlockSize
		case 3:
			tr.config.MaxNumSeqs = 1
		case 4:
			tr.config.DisablePrefixCaching = true
		case 5: // urgent ones throw out who has his chunk already, of a budget that is short
			tr.config.PriorityScheduling, tr.config.MaxNumSeqs, tr.config.BlockSize = true, 20, 2
			tr.config.MaxNumBatchedTokens = 3 + random.IntN(8)
			tr = tr.rehashed(4)
			for _, ev := range tr.events {
				if ev.submit != nil {
					ev.submit.Priority = random.IntN(5) - int(ev.submit.ID)/10
				}
			}
		case 6: // who waits is let in by what others generate
			tr.config.BlockSize, tr.config.Blocks = 2, 20+random.IntN(20)
			tr = tr.rehashed(1)
		}
		preemptions += tr.twins(t)
	}
	if preemptions < 100 {
		t.Errorf("%d preemptions: the traffic doesn't try the engine", preemptions)
	}
}

// rehashed fits all requests into the configured pool, with as many texts to share.
func (tr traffic) rehashed(texts uint64) traffic {
	tokens := tr.config.KVTokens()
	tr.config.MaxModelLen = 0
	for i := range tr.events {
		if r := tr.events[i].submit; r != nil {
			r.PromptTokens = max(1, min(r.PromptTokens, tokens/2))
			r.OutputTokens = max(1, min(r.OutputTokens, tokens/3))
			whole := chain(int(r.ID%texts), (r.PromptTokens+r.OutputTokens)/tr.config.BlockSize)
			r.Blocks, r.OutputBlocks = whole[:r.PromptTokens/tr.config.BlockSize], whole[r.PromptTokens/tr.config.BlockSize:]
		}
	}
	if tr.config.LongPrefillTokens > 0 {
		tr.config.LongPrefillTokens = min(tr.config.LongPrefillTokens, tokens)
	}
	return tr
}

// Longer lives, of a larger cache and requests that share more.
func FuzzTwin(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, seed+7)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) { randomTraffic(rand.New(rand.NewPCG(a, b))).twins(t) })
}
