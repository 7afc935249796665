package vllmapi

import "github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"

// kvSource is what KV events tell of a request besides hashes, and what metrics
// do. Requests have one only where there are events: it keeps their tokens alive.
type kvSource struct {
	*vllmmetrics.Params
	prompt        []token
	output        *reply
	blockSize     int
	adapterID     int
	adapter, salt string
}

// source is that of a sequence.
func (j *job) source(asked *vllmmetrics.Params, prompt []token, output *reply) any {
	if !j.s.engine.KVEvents {
		return asked
	}
	name := j.s.adapterOf(j.g.model)
	return &kvSource{asked, prompt, output, j.s.engine.BlockSize, j.s.adapters.id(name), name, j.g.salt}
}

// BlockTokens are the ids of the tokens in a block.
func (k *kvSource) BlockTokens(block int) []uint64 {
	ids := make([]uint64, 0, k.blockSize)
	for i := block * k.blockSize; i < (block+1)*k.blockSize; i++ {
		switch j := i - len(k.prompt); {
		case j < 0:
			ids = append(ids, k.prompt[i].id())
		case j < k.output.count:
			ids = append(ids, k.output.token(j).id())
		}
	}
	return ids
}

// Adapter is the adapter's id, from 1 on, and its name; 0 and "" without.
func (k *kvSource) Adapter() (id int, name string) { return k.adapterID, k.adapter }

// Salt is the request's cache_salt.
func (k *kvSource) Salt() string { return k.salt }
