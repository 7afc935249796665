package prompt

import (
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

// mark is the byte that stands before the letter of a mark. In text it comes
// behind a backslash only.
const mark = '"'

// feed takes the canonical stream in pieces of any size. Short ones are
// gathered, long ones are hashed where they stand in the body.
type feed struct {
	chain   prefix.Chain
	digest  xxhash.Digest
	to      sink
	counted int // bytes that went to toCount
	n       int // bytes of buf in use
	buf     [1024]byte
}

// shortPiece is the length below which copying a piece is cheaper than a round
// of hashing for itself, bytes.
const shortPiece = 128

// atOnce is how much is copied with one move for each half, and so without a
// branch for its length, bytes.
const atOnce = 32

func (f *feed) reset(hashes []uint64, blockBytes int) {
	f.chain.Reset(hashes, blockBytes)
	f.to, f.counted, f.n = toChain, 0, 0
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

// flush is rare, and room, which calls it, is to be inlined.
//
//go:noinline
func (f *feed) flush() {
	if f.n > 0 {
		f.write(f.buf[:f.n])
		f.n = 0
	}
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
	if len(p) <= atOnce && cap(p) >= atOnce {
		// As most names and roles are. What follows p comes along, and isn't counted.
		f.room(atOnce)
		*(*[atOnce]byte)(f.buf[f.n:]) = [atOnce]byte(p[:atOnce])
		f.n += len(p)
		return
	}
	if len(p) >= shortPiece {
		f.flush()
		f.write(p)
		return
	}
	f.room(shortPiece)
	f.n += copy(f.buf[f.n:], p)
}

func (f *feed) mark(letter byte) {
	f.room(2)
	f.buf[f.n], f.buf[f.n+1] = mark, letter
	f.n += 2
}

// twoMarks feeds two marks.
func (f *feed) twoMarks(first, second byte) {
	f.room(4)
	b := f.buf[f.n : f.n+4]
	b[0], b[1], b[2], b[3] = mark, first, mark, second
	f.n += 4
}

// number feeds a hash. It may hold any byte; its length is fixed, so it can't
// be taken for what follows it.
func (f *feed) number(x uint64) {
	f.room(8)
	binary.BigEndian.PutUint64(f.buf[f.n:], x)
	f.n += 8
}

// room makes room for n bytes, which are fewer than buf has.
func (f *feed) room(n int) {
	if len(f.buf)-f.n < n {
		f.flush()
	}
}

// escaped feeds a string's raw text and reports whether its escapes are valid.
// The canonical form of text has the shortest escapes, and those that it must
// have only: nearly all text comes so, and is fed where it stands. cut says that
// more of the text may follow.
func (f *feed) escaped(raw []byte, cut bool) bool {
	from, end, carry := 0, len(raw), uint64(0)
	for at := 0; at < len(raw); {
		stop := seek(raw, at, carry)
		at, carry = stop.at+stride, stop.carry
		for m := stop.odd; m != 0; {
			i := stop.at + bits.TrailingZeros64(m)
			if i == len(raw) {
				end-- // half an escape
				break
			}
			f.emit(raw[from : i-1])
			if from = f.unescape(raw, i-1, cut); from < 0 {
				return false
			}
			if from > at {
				at, carry = from, 0
				break
			}
			m = m >> (from - stop.at) << (from - stop.at)
		}
	}
	f.emit(raw[from : end-int(carry)])
	return end-int(carry) == len(raw)
}

// unescape feeds the escapes that follow each other from raw[i] on in canonical
// form, and returns the index behind them, -1 if one is wrong or only the half of
// it is there.
func (f *feed) unescape(raw []byte, i int, cut bool) int {
	for i+1 < len(raw) && raw[i] == '\\' {
		f.room(maxCanonical)
		if len(raw)-i >= 6 && raw[i+1] == 'u' {
			// Nearly all are of three bytes, as those of Chinese.
			r := hex4(raw[i:])
			if r-0xd800 < 0x400 && cut && len(raw)-i < 12 {
				return -1 // its other half may follow
			}
			if r >= 0x800 && r-0xd800 >= 0x800 && r <= 0xffff {
				f.buf[f.n], f.buf[f.n+1], f.buf[f.n+2] = 0xe0|byte(r>>12), 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f)
				f.n += 3
				i += 6
				continue
			}
		}
		out, n := canonical(f.buf[:f.n], raw[i:])
		if n == 0 {
			return -1
		}
		f.n = len(out)
		i += n
	}
	return i
}

// maxCanonical is the length of the longest escape that stays one, \u00XX.
const maxCanonical = 6

// canonical appends the canonical form of the escape at the start of raw, and
// returns the escape's length, 0 if there is none.
func canonical(dst, raw []byte) ([]byte, int) {
	from := len(dst)
	dst, n := appendEscape(dst, raw)
	if n == 0 || len(dst) != from+1 {
		return dst, n
	}
	c := dst[from]
	if letter := letters[c]; letter != 0 {
		dst[from] = '\\'
		return append(dst, letter), n
	}
	if c < ' ' {
		const hex = "0123456789abcdef"
		return append(dst[:from], '\\', 'u', '0', '0', hex[c>>4], hex[c&15]), n
	}
	return dst, n
}

// escapes are the bytes that the short escapes stand for, by letter; letters
// the other way round, but for the slash, which needs no escape.
var (
	escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'}
	letters = [256]byte{'"': '"', '\\': '\\', '\n': 'n', '\t': 't', '\r': 'r', '\b': 'b', '\f': 'f'}
)

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
	if len(raw) < 6 {
		return dst, 0
	}
	r := hex4(raw)
	switch {
	case r > 0xffff:
		return dst, 0
	case r < 0xd800 || r > 0xdfff:
		return utf8.AppendRune(dst, rune(r)), 6
	case r < 0xdc00 && len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u':
		if low := hex4(raw[6:]); low >= 0xdc00 && low <= 0xdfff {
			return utf8.AppendRune(dst, rune(0x10000+(r-0xd800)<<10+(low-0xdc00))), 12
		}
	}
	return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f)), 6
}

// hex4 is the number of an escape \uXXXX at the start of raw, more than 0xffff
// if its digits are none.
func hex4(raw []byte) uint32 {
	_ = raw[5]
	return digits[raw[2]]<<12 | digits[raw[3]]<<8 | digits[raw[4]]<<4 | digits[raw[5]]
}

// noDigit is the value of what isn't a hexadecimal digit.
const noDigit = 1 << 16

var digits = func() (d [256]uint32) {
	for c := range d {
		d[c] = noDigit
	}
	for i := range uint32(10) {
		d['0'+i] = i
	}
	for i := range uint32(6) {
		d['a'+i], d['A'+i] = 10+i, 10+i
	}
	return d
}()
