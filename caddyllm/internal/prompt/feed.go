package prompt

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prefix"
)

// sink is where the canonical stream goes.
type sink uint8

const (
	toChain  sink = iota // the prompt
	toDigest             // a picture or a salt: one hash
	toCount              // the other prompts of a batch: only their length
)

// mark is the byte that stands before the letter of a mark. No UTF-8 text has
// it.
const mark = 0xff

// feedBuffer is the room for pieces, bytes: a block of the largest size and a
// stretch of text, and some more for what is stored a word at a time.
const (
	feedStretch = 4096
	feedBuffer  = prefix.MaxBlock + feedStretch + 64
)

// feed takes the canonical stream in pieces of any size. They are gathered and
// passed on in whole blocks, which is what hashing is fastest on.
type feed struct {
	chain   prefix.Chain
	digest  xxhash.Digest
	to      sink
	counted int  // bytes that went to toCount
	forged  bool // a text held the byte of a mark, so it isn't UTF-8
	n       int  // bytes of buf in use
	buf     [feedBuffer]byte
}

func (f *feed) reset(hashes []uint64, blockBytes int) {
	f.chain.Reset(hashes, blockBytes)
	f.to, f.counted, f.forged, f.n = toChain, 0, false, 0
}

// begin sends what follows to another sink and returns the one before.
func (f *feed) begin(to sink) sink {
	f.flush()
	before := f.to
	f.to = to
	if to == toDigest {
		f.digest.Reset()
	}
	return before
}

// sum is the hash of what went to toDigest since it began.
func (f *feed) sum() uint64 {
	f.flush()
	return f.digest.Sum64()
}

// flush passes on all there is.
func (f *feed) flush() {
	f.write(f.buf[:f.n])
	f.n = 0
}

// spill passes on whole blocks and keeps the rest.
func (f *feed) spill() {
	n := f.n
	if f.to == toChain {
		n -= (f.chain.Open() + f.n) % f.chain.Block()
	}
	f.write(f.buf[:n])
	f.n = copy(f.buf[:], f.buf[n:f.n])
}

func (f *feed) write(p []byte) {
	switch f.to {
	case toChain:
		f.chain.Write(p)
	case toDigest:
		_, _ = f.digest.Write(p) // never fails
	case toCount:
		f.counted += len(p)
	}
}

// emit feeds bytes as they are.
func (f *feed) emit(p []byte) {
	for len(p) > 0 {
		f.room(1)
		n := copy(f.buf[f.n:], p)
		f.n += n
		p = p[n:]
	}
}

func (f *feed) mark(letter byte) {
	f.room(2)
	f.buf[f.n], f.buf[f.n+1] = mark, letter
	f.n += 2
}

// number feeds a hash. It may hold any byte; its length is fixed, so it can't
// be taken for what follows it.
func (f *feed) number(x uint64) {
	f.room(8)
	binary.BigEndian.PutUint64(f.buf[f.n:], x)
	f.n += 8
}

// room makes room for n bytes, at most feedStretch and some.
func (f *feed) room(n int) {
	if len(f.buf)-f.n < n {
		f.spill()
	}
}

// unescape feeds a string's raw text and reports whether its escapes are valid.
// It goes by stretches: one without escapes, as a picture or a book has them,
// is only looked at and hashed.
func (f *feed) unescape(raw []byte) bool {
	for len(raw) > longValue {
		stretch := raw[:min(len(raw), feedStretch)]
		if bytes.IndexByte(stretch, '\\') < 0 && bytes.IndexByte(stretch, mark) < 0 {
			if f.to == toDigest && f.n == 0 {
				f.write(stretch)
			} else {
				f.emit(stretch)
			}
			raw = raw[len(stretch):]
			continue
		}
		n := f.translate(raw, len(stretch)-maxEscape)
		if n < 0 {
			return f.forged
		}
		raw = raw[n:]
	}
	return f.translate(raw, len(raw)) >= 0 || f.forged
}

// maxEscape is the length of the longest escape, a surrogate pair.
const maxEscape = 12

// translate feeds raw, escapes undone, until at least limit bytes of it are
// used, and returns how many are. It is negative if an escape is invalid or the
// text is forged. No escape makes more bytes than it has, so the buffer needs
// room for a stretch only.
//
// It copies a word at a time and looks for the bytes that need a closer look in
// all of it at once.
func (f *feed) translate(raw []byte, limit int) int {
	f.room(feedStretch + 16)
	out := f.buf[f.n:]
	i, n := 0, 0
	for i < limit {
		if i+8 <= len(raw) {
			x := binary.LittleEndian.Uint64(raw[i:])
			binary.LittleEndian.PutUint64(out[n:], x)
			hit := zeroBytes(x ^ slashes)
			if x&highs != 0 {
				hit |= zeroBytes(^x)
			}
			if hit == 0 {
				i, n = i+8, n+8
				continue
			}
			k := bits.TrailingZeros64(hit) / 8
			i, n = i+k, n+k
		}
		switch c := raw[i]; {
		case c == mark:
			f.forged = true
			return -1
		case c != '\\':
			out[n] = c
			i, n = i+1, n+1
		case i+1 < len(raw) && escapes[raw[i+1]] != 0:
			out[n] = escapes[raw[i+1]]
			i, n = i+2, n+1
		default:
			text, used := appendEscape(out[:n], raw[i:])
			if used == 0 {
				f.n += n
				return -1
			}
			i, n = i+used, len(text)
		}
	}
	f.n += n
	return i
}

// escapes are the bytes that the short escapes stand for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'}

// appendEscape appends what the escape at the start of raw stands for, at most
// utf8.UTFMax bytes, and returns the length of the escape, 0 if there is none.
// Half a surrogate pair becomes the three bytes UTF-8 would have for it, so
// that different halves stay different.
func appendEscape(dst, raw []byte) ([]byte, int) {
	if len(raw) < 2 || raw[0] != '\\' {
		return dst, 0
	}
	if c := escapes[raw[1]]; c != 0 {
		return append(dst, c), 2
	}
	if raw[1] == 'u' {
		return appendUnicode(dst, raw)
	}
	return dst, 0
}

func appendUnicode(dst, raw []byte) ([]byte, int) {
	r, ok := hex4(raw)
	if !ok {
		return dst, 0
	}
	if r < 0xd800 || r > 0xdfff {
		return utf8.AppendRune(dst, r), 6
	}
	if r < 0xdc00 {
		if low, ok := hex4(raw[6:]); ok && low >= 0xdc00 && low <= 0xdfff {
			return utf8.AppendRune(dst, 0x10000+(r-0xd800)<<10+(low-0xdc00)), 12
		}
	}
	return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f)), 6
}

// hex4 reads the number of an escape \uXXXX at the start of raw.
func hex4(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range raw[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
