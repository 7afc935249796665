package kvevents

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Format is a vLLM version's way to write events. A batch is an array in all.
type Format int

// The formats, by the first version that has it.
const (
	V09  Format = iota + 1 // 0.9: events are arrays: tag, hashes, parent, tokens, block size, LoRA id
	V011                   // 0.11: and the medium
	V019                   // 0.19: and the LoRA name and the extra keys
	V024                   // 0.24: events are maps with a type; replays tell the topic
)

// medium is where the blocks are: here always in the GPU's memory.
const medium = "GPU"

// Source is the request that computed a block; simengine.Request.Source holds
// it. Its methods may be called until the request's last block was told of, and
// from another goroutine than the one that submitted it.
type Source interface {
	// BlockTokens are the ids of the tokens in a block of the request's chain.
	BlockTokens(block int) []uint64

	// Adapter is the LoRA adapter's id, from 1 on, and its name; 0 and "" without.
	Adapter() (id int, name string)

	// Salt is the request's cache_salt.
	Salt() string
}

// stored is a run of blocks that one request computed one after the other.
type stored struct {
	source Source
	first  int
	parent uint64 // of the first, if that isn't block 0
	hashes []uint64
}

// join makes vLLM's events of those of the engine: consecutive blocks of a
// request are one event. Others stand alone, as hashes without a source.
func join(events []simengine.KVEvent, blockSize int, yield func(simengine.KVEventKind, *stored)) {
	var run *stored
	var request uint64
	flush := func() {
		if run != nil {
			yield(simengine.BlockStored, run)
			run = nil
		}
	}
	for _, ev := range events {
		if ev.Kind != simengine.BlockStored {
			flush()
			yield(ev.Kind, &stored{hashes: []uint64{ev.Hash}})
			continue
		}
		if run != nil && request == ev.Request && ev.Index == run.first+len(run.hashes) {
			run.hashes = append(run.hashes, ev.Hash)
			continue
		}
		flush()
		source, _ := ev.Source.(Source)
		run, request = &stored{source, ev.Index, ev.Parent, []uint64{ev.Hash}}, ev.Request
	}
	flush()
}

// encoder writes batches. It is not safe for concurrent use.
type encoder struct {
	format    Format
	blockSize int
	rank      int
	out       bytes.Buffer
	*msgpack.Encoder
}

func newEncoder(format Format, blockSize, rank int) *encoder {
	e := &encoder{format: format, blockSize: blockSize, rank: rank}
	e.Encoder = msgpack.NewEncoder(&e.out)
	e.UseCompactInts(true)
	return e
}

// batch writes the events of a step at a unix time in seconds.
func (e *encoder) batch(at float64, events []simengine.KVEvent) []byte {
	e.out.Reset()
	n := 0
	join(events, e.blockSize, func(simengine.KVEventKind, *stored) { n++ })
	e.list(3)
	e.value(at)
	e.list(n)
	join(events, e.blockSize, func(kind simengine.KVEventKind, s *stored) {
		switch kind {
		case simengine.BlockStored:
			e.event("BlockStored", e.stored(s))
		case simengine.BlockRemoved:
			e.event("BlockRemoved", e.removed(s))
		default:
			e.event("AllBlocksCleared", nil)
		}
	})
	e.value(e.rank)
	return bytes.Clone(e.out.Bytes())
}

// field is a member of an event, by its name in a map and by its place in an
// array.
type field struct {
	name  string
	value any
}

func (e *encoder) stored(s *stored) []field {
	var tokens []uint64
	var parent, adapterID, adapterName any
	var salt string
	if s.first > 0 {
		parent = s.parent
	}
	if s.source != nil {
		for i := range s.hashes {
			tokens = append(tokens, s.source.BlockTokens(s.first+i)...)
		}
		if id, name := s.source.Adapter(); id > 0 {
			adapterID, adapterName = id, name
		}
		salt = s.source.Salt()
	}
	list := []field{
		{"block_hashes", s.hashes}, {"parent_block_hash", parent}, {"token_ids", tokens},
		{"block_size", e.blockSize}, {"lora_id", adapterID},
	}
	if e.format >= V011 {
		list = append(list, field{"medium", medium})
	}
	if e.format >= V019 {
		list = append(list, field{"lora_name", adapterName}, field{"extra_keys", extraKeys(s, adapterName, salt)})
	}
	if e.format >= V024 {
		list = append(list, field{"group_idx", 0}, field{"kv_cache_spec_kind", "full_attention"})
	}
	return list
}

// extraKeys are what besides its tokens went into each block's hash: the
// adapter's name, and in the first block the salt.
func extraKeys(s *stored, adapter any, salt string) []any {
	list := make([]any, len(s.hashes))
	for i := range list {
		var keys []any
		if adapter != nil {
			keys = append(keys, adapter)
		}
		if s.first+i == 0 && salt != "" {
			keys = append(keys, salt)
		}
		if keys != nil {
			list[i] = keys
		}
	}
	return list
}

func (e *encoder) removed(s *stored) []field {
	list := []field{{"block_hashes", s.hashes}}
	if e.format >= V011 {
		list = append(list, field{"medium", medium})
	}
	if e.format >= V024 {
		list = append(list, field{"group_idx", 0})
	}
	return list
}

func (e *encoder) event(tag string, fields []field) {
	if e.format < V024 {
		e.list(1 + len(fields))
		e.value(tag)
		for _, f := range fields {
			e.value(f.value)
		}
		return
	}
	e.must(e.EncodeMapLen(1 + len(fields)))
	e.value("type")
	e.value(tag)
	for _, f := range fields {
		e.value(f.name)
		e.value(f.value)
	}
}

func (e *encoder) list(n int) { e.must(e.EncodeArrayLen(n)) }

// value writes one of the few types that events are made of.
func (e *encoder) value(v any) {
	if numbers, ok := v.([]uint64); ok {
		e.list(len(numbers))
		for _, n := range numbers {
			e.must(e.EncodeUint(n))
		}
		return
	}
	if values, ok := v.([]any); ok {
		e.list(len(values))
		for _, w := range values {
			e.value(w)
		}
		return
	}
	e.must(e.Encode(v))
}

// must is for errors that a buffer in memory and these types don't make.
func (e *encoder) must(err error) {
	if err != nil {
		panic(err)
	}
}
