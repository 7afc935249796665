package rivals

import "time"

// worker has what the policies share that reckon in tokens of work: a bounded
// model of the caches, in true tokens. It is that of the text router of their
// authors' fork made as good as llm_prefix's: capacity as scraped, heads
// outlive tails, blocks touched when routed, at the first token and at the end.
type worker struct {
	book
	chance
	cache *lru
}

const (
	workerBlock = 256 // bytes
	// workerCapacity is believed before a page tells more, tokens.
	workerCapacity = 440_000
	bytesPerToken  = 4
)

func newWorker(env Env) worker {
	return worker{newBook(env), chance{env.Seed}, newLRU(env, workerCapacity*bytesPerToken/workerBlock)}
}

// missing is how many tokens an upstream lacks that holds so many blocks.
func missing(q *Request, held int) float64 {
	return max(float64(q.Tokens)-float64(held)*workerBlock/bytesPerToken, 0)
}

// choose sends the request to the target with the least score of the tokens
// that it would miss.
func (w *worker) choose(now time.Duration, q *Request, targets []Target, score func(l *load, missing float64) float64) int {
	chain := q.Blocks(workerBlock)
	held := w.cache.held(chain)
	best := least(targets, &w.chance, func(up int) float64 { return score(&w.up[up], missing(q, held[up])) })
	up := targets[best].Upstream
	w.send(now, q, up, float64(q.Tokens), missing(q, held[up])).chain = chain
	w.cache.put(up, chain)
	return best
}

func (w *worker) FirstToken(_ time.Duration, id uint64) {
	if f := w.first(id); f != nil {
		w.cache.put(f.up, f.chain)
	}
}

func (w *worker) End(_ time.Duration, id uint64, o Outcome, _ *Usage) {
	if f := w.end(id); f != nil && o == Completed {
		w.cache.put(f.up, f.chain)
	}
}

func (w *worker) Scraped(now time.Duration, up int, page *Page) {
	w.book.Scraped(now, up, page)
	if page != nil && page.CapacityTokens > 0 {
		w.cache.resize(up, int(page.CapacityTokens*bytesPerToken/workerBlock))
	}
}

// lmetric is LMetric (arXiv 2603.15202, OSDI 2026): queued and new prefill
// tokens times the requests in flight, itself included. Generous: the paper's
// indicators come from the engines; here the proxy's own count is exact and
// without delay.
type lmetric struct{ worker }

func newLMetric(env Env, _ settings) Policy { return &lmetric{newWorker(env)} }

func (p *lmetric) Pick(now time.Duration, q *Request, targets []Target) int {
	return p.choose(now, q, targets, func(l *load, missing float64) float64 {
		return (l.pending + missing) * float64(l.inFlight+1)
	})
}

// lpwl is least prefill work left: queued and new prefill tokens, fewest
// requests among equals. Generous as lmetric.
type lpwl struct{ worker }

func newLPWL(env Env, _ settings) Policy { return &lpwl{newWorker(env)} }

func (p *lpwl) Pick(now time.Duration, q *Request, targets []Target) int {
	return p.choose(now, q, targets, func(l *load, missing float64) float64 {
		return l.pending + missing + float64(l.inFlight)*1e-6
	})
}
