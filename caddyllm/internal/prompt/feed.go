package prompt

import (
	"bytes"
	"encoding/binary"
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

// feed takes the canonical stream in pieces of any size. Short ones are
// gathered: hashing is fastest on whole blocks, and escapes make short pieces.
type feed struct {
	chain   prefix.Chain
	digest  xxhash.Digest
	to      sink
	counted int  // bytes that went to toCount
	forged  bool // a text held the byte of a mark, so it isn't UTF-8
	n       int  // bytes of buf in use
	buf     [4096]byte
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

func (f *feed) flush() {
	f.write(f.buf[:f.n])
	f.n = 0
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

func (f *feed) emit(p []byte) {
	if len(p) > len(f.buf)-f.n {
		f.flush()
		if len(p) >= len(f.buf) {
			f.write(p)
			return
		}
	}
	f.n += copy(f.buf[f.n:], p)
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

func (f *feed) room(n int) {
	if len(f.buf)-f.n < n {
		f.flush()
	}
}

// unescape feeds a string's raw text and reports whether its escapes are valid.
func (f *feed) unescape(raw []byte) bool {
	if bytes.IndexByte(raw, mark) >= 0 {
		f.forged = true
		return true
	}
	for {
		k := bytes.IndexByte(raw, '\\')
		if k < 0 {
			f.emit(raw)
			return true
		}
		f.emit(raw[:k])
		f.room(utf8.UTFMax)
		out, n := appendEscape(f.buf[:f.n], raw[k:])
		if n == 0 {
			return false
		}
		f.n = len(out)
		raw = raw[k+n:]
	}
}

// appendEscape appends what the escape at the start of raw stands for, at most
// utf8.UTFMax bytes, and returns the length of the escape, 0 if there is none.
// Half a surrogate pair becomes the three bytes UTF-8 would have for it, so
// that different halves stay different.
func appendEscape(dst, raw []byte) ([]byte, int) {
	if len(raw) < 2 || raw[0] != '\\' {
		return dst, 0
	}
	switch c := raw[1]; c {
	case '"', '\\', '/':
		return append(dst, c), 2
	case 'n':
		return append(dst, '\n'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'u':
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
