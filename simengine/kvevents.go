package simengine

// KVEventKind is what happened to the prefix cache.
type KVEventKind uint8

const (
	BlockStored KVEventKind = iota + 1
	BlockRemoved
	AllBlocksCleared
)

// KVEvent is a change of what the prefix cache holds, as vLLM's KV events tell
// it. vLLM makes one BlockStored of consecutive blocks of a request. A block is
// stored again when a twin of it is computed, and removed when any of the twins
// goes, as in vLLM.
type KVEvent struct {
	Kind KVEventKind

	// Hash is the block's; 0 with AllBlocksCleared.
	Hash uint64

	// Of BlockStored: the request that computed the block, the block's place in
	// the request's chain (Blocks, then OutputBlocks), and the hash of the one
	// before it, 0 for the first.
	Request uint64
	Source  any // Request.Source
	Index   int
	Parent  uint64
}

// KVEvents returns what happened to the cache in the step that the latest call
// of Step ended, in order, if Config.KVEvents is set. Though blocks can be found
// from the moment at which the step is scheduled, vLLM publishes them at its
// end. What ResetPrefixCache does comes with the next step that ends. The slice
// is valid until the next call of Step.
func (e *Engine) KVEvents() []KVEvent { return e.kvEvents }

// stored tells of block i of s.
func (e *Engine) stored(s *sequence, i int) {
	ev := KVEvent{Kind: BlockStored, Hash: s.hash(i), Request: s.ID, Source: s.Source, Index: i}
	if i > 0 {
		ev.Parent = s.hash(i - 1)
	}
	e.kvPending = append(e.kvPending, ev)
}

// removed is told by the pool of each hash that it drops.
func (e *Engine) removed(hash uint64) {
	e.kvPending = append(e.kvPending, KVEvent{Kind: BlockRemoved, Hash: hash})
}
