package vllmapi

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// A token is one unit of a prompt or of a reply, by a number that fits into
// JSON's exact integers. Its upper half, less ownKinds, tells what the lower half
// is:
//
//	1..4   so many bytes of text, big endian
//	5      a piece of an image, an audio clip or another file, by hash
//
// so that no text can pass for a special, and a text is got back from its
// tokens without a vocabulary. An upper half of 0 is a number that a client gave,
// or one of the specials below. Clients know tokens by their id (tokenids.go).
type token uint64

const (
	textBytes   = 4 // bytes of text in a token, the customary estimate for English
	mediaKind   = 5
	ownKinds    = 0x15ae30
	vocabulary  = 128256 // numbers below it are accepted in a prompt; Llama 3's
	mediaTokens = 256    // tokens of an image or other file whatever its size; Gemma 3's for an image
)

// Specials of the chat template; Llama 3's numbers where it has such a one.
const (
	tokenBegin       token = 128000
	tokenHeader      token = 128006
	tokenHeaderEnd   token = 128007
	tokenEndOfTurn   token = 128009
	tokenTools       token = 128010
	tokenCall        token = 128011
	tokenCallPart    token = 128012
	tokenCallResult  token = 128013
	tokenParticipant token = 128014
	tokenThink       token = 128015
	tokenThinkEnd    token = 128016
)

// appendText cuts a text into tokens of textBytes bytes; the last may be
// shorter. The cut begins anew with every text.
func appendText(tokens []token, text string) []token {
	tokens = slices.Grow(tokens, (len(text)+textBytes-1)/textBytes)
	for len(text) > 0 {
		n := min(textBytes, len(text))
		tokens = append(tokens, textToken(text[:n]))
		text = text[n:]
	}
	return tokens
}

func textToken(piece string) token {
	t := ownKinds + token(len(piece))
	for i := range textBytes {
		t <<= 8
		if i < len(piece) {
			t |= token(piece[i])
		}
	}
	return t
}

// appendMedia adds the tokens of an image or another file, known by its
// address or its bytes.
func appendMedia(tokens []token, content string) []token {
	h := xxhash.Sum64String(content)
	for i := range uint64(mediaTokens) {
		tokens = append(tokens, (ownKinds+mediaKind)<<32|token(mix(h+i)>>40))
	}
	return tokens
}

// appendBytes adds the text that a token stands for: none for specials and
// media, the number in brackets for a client's own, whose text is unknown.
func (t token) appendBytes(b []byte) []byte {
	switch kind := t.kind(); {
	case t < tokenBegin:
		b = append(b, '[')
		b = strconv.AppendUint(b, uint64(t), 10)
		return append(b, ']')
	case kind >= 1 && kind <= textBytes:
		var bytes [4]byte
		binary.BigEndian.PutUint32(bytes[:], uint32(t))
		return append(b, bytes[:kind]...)
	}
	return b
}

// kind is what the lower half is, 1 to 5; others for numbers of a vocabulary.
func (t token) kind() int { return int(t>>32) - ownKinds }

func detokenize(tokens []token) string {
	var b []byte
	for _, t := range tokens {
		b = t.appendBytes(b)
	}
	return string(b)
}

// chain hashes each full block of tokens together with all before it. Equal
// hashes mean equal prefixes under one seed.
func chain(seed uint64, tokens []token, blockSize int) []uint64 {
	hashes := make([]uint64, 0, len(tokens)/blockSize)
	buf := make([]byte, 8*(blockSize+1))
	parent := seed
	for block := range slices.Chunk(tokens, blockSize) {
		if len(block) < blockSize {
			break
		}
		parent = hashBlock(buf, parent, block)
		hashes = append(hashes, parent)
	}
	return hashes
}

// chainReply continues a chain at parent with the prompt's last tokens, which
// fill no block, and the reply's.
func chainReply(parent uint64, head []token, r *reply, blockSize int) []uint64 {
	n := (len(head) + r.count) / blockSize
	if n == 0 {
		return nil
	}
	hashes := make([]uint64, n)
	buf := make([]byte, 8*(blockSize+1))
	block := append(make([]token, 0, blockSize), head...)
	for i, next := 0, 0; i < n; i++ {
		end := next + blockSize - len(block)
		block = r.appendTokens(block, next, end)
		next = end
		parent = hashBlock(buf, parent, block)
		hashes[i], block = parent, block[:0]
	}
	return hashes
}

// countMedia counts the tokens that stand for images and files.
func countMedia(tokens []token) int {
	n := 0
	for _, t := range tokens {
		if t.kind() == mediaKind {
			n++
		}
	}
	return n
}

// fingerprint hashes all tokens, a last partial block included.
func fingerprint(seed uint64, tokens []token) uint64 {
	const step = 64
	buf := make([]byte, 8*(step+1))
	for block := range slices.Chunk(tokens, step) {
		seed = hashBlock(buf, seed, block)
	}
	return seed
}

func hashBlock(buf []byte, parent uint64, block []token) uint64 {
	binary.LittleEndian.PutUint64(buf, parent)
	for i, t := range block {
		binary.LittleEndian.PutUint64(buf[8*(i+1):], uint64(t))
	}
	return xxhash.Sum64(buf[:8*(len(block)+1)])
}

// cacheSeed begins the chains of a model's prompts under one salt, as vLLM's
// blocks differ by adapter and cache_salt.
func cacheSeed(model, salt string) uint64 {
	b := binary.AppendUvarint(nil, uint64(len(model)))
	return xxhash.Sum64(append(append(b, model...), salt...))
}

// mix is the finaliser of SplitMix64: a bijection whose outputs for successive
// inputs look independent.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
