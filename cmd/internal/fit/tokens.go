package fit

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// readTokens gives the requests the hashes of their blocks, from the recorded
// tokens where there are any. Requests whose tokens aren't known share nothing,
// but after a preemption they find their own blocks again.
func (r *Run) readTokens(dir string, rows []row) error {
	total := 0
	for i := range r.Requests {
		total += (r.Requests[i].Prompt + r.Requests[i].Output) / r.Engine.BlockSize
	}
	if total > maxBlocks {
		return fmt.Errorf("reading the recording: %d blocks in all prompts and replies, want at most %d", total, maxBlocks)
	}
	prompts, err := readPrompts(dir, r.Engine.BlockSize)
	if err != nil {
		return err
	}
	if prompts == nil {
		r.note("there is no workload_tokens.jsonl: no two prompts are taken to share a prefix")
	}
	// Both files are in the order in which the load was written; rows were sorted
	// by arrival since.
	strange := 0
	for i := range r.Requests {
		q := &r.Requests[i]
		at := rows[i].ordinal
		if at < len(prompts) && prompts[at].tokens == q.Prompt {
			q.Blocks = prompts[at].blocks
			continue
		}
		if prompts != nil {
			strange++
		}
		q.Blocks = make([]uint64, q.Prompt/r.Engine.BlockSize)
		for j := range q.Blocks {
			q.Blocks[j] = ownBlock(i, j)
		}
	}
	if strange > 0 {
		r.note("%d requests have other prompts in workload_tokens.jsonl; they are taken to share no prefix", strange)
	}
	return nil
}

// maxBlocks bounds the blocks of all requests, of 8 bytes each.
const maxBlocks = 1 << 25

// ownBlock is the hash of block j of request i, which no other request has.
func ownBlock(i, j int) uint64 { return uint64(i+1)<<32 | uint64(j) }

type promptBlocks struct {
	tokens int
	blocks []uint64
}

func readPrompts(dir string, blockSize int) ([]promptBlocks, error) {
	for _, name := range []string{"workload_tokens.jsonl.gz", "workload_tokens.jsonl"} {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the recording: %w", err)
		}
		defer f.Close()
		var r io.Reader = f
		if strings.HasSuffix(name, ".gz") {
			if r, err = gzip.NewReader(f); err != nil {
				return nil, fmt.Errorf("reading %s: %w", name, err)
			}
		}
		prompts, err := parsePrompts(r, blockSize)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		return prompts, nil
	}
	return nil, nil
}

func parsePrompts(r io.Reader, blockSize int) ([]promptBlocks, error) {
	prompts := []promptBlocks{}
	err := lines(r, func(_ int, line []byte) error {
		if len(prompts) == maxRequests {
			return fmt.Errorf("more than %d prompts", maxRequests)
		}
		var x struct {
			Tokens []int64 `json:"input_tok_ids"`
		}
		if err := json.Unmarshal(line, &x); err != nil {
			return err
		}
		prompts = append(prompts, promptBlocks{tokens: len(x.Tokens), blocks: hashBlocks(x.Tokens, blockSize)})
		return nil
	})
	return prompts, err
}

// hashBlocks chains the hashes of the full blocks of tokens. The top bit keeps
// them apart from those of ownBlock.
func hashBlocks(tokens []int64, size int) []uint64 {
	var blocks []uint64
	var parent uint64
	b := make([]byte, 0, 8*(size+1))
	for len(tokens) >= size {
		b = binary.LittleEndian.AppendUint64(b[:0], parent)
		for _, t := range tokens[:size] {
			b = binary.LittleEndian.AppendUint64(b, uint64(t))
		}
		parent = xxhash.Sum64(b) | 1<<63
		blocks = append(blocks, parent)
		tokens = tokens[size:]
	}
	return blocks
}
