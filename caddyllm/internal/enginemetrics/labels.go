package enginemetrics

import (
	"bytes"

	"github.com/cespare/xxhash/v2"
)

// sample is what follows a metric's name on its line. Labels are kept as they
// were written, escapes and all: those of interest are numbers and words.
type sample struct{ labels []byte }

// tellsCopies reports whether copies of one number differ in a label. All ranks of
// an engine that is parallel in tensors, layers, experts or contexts, and all
// processes of a server, have the one queue. SGLang counts a queue once more for
// each priority, beside the whole.
func tellsCopies(label []byte) bool {
	switch string(label) {
	case "pid", "priority":
		return true
	}
	return bytes.HasSuffix(label, rankSuffix) && !ofDataRank(label)
}

// identifies reports whether a label tells engines apart on an info series.
func identifies(label []byte) bool {
	switch string(label) {
	case "engine", "model_name", "ReplicaId", "WorkerId":
		return true
	}
	return ofDataRank(label)
}

// ofDataRank reports whether a label is the rank in data, of which each has a
// queue and a cache of its own: dp_rank, attn_dp_rank, data_parallel_rank.
func ofDataRank(label []byte) bool {
	return string(label) == "dp_rank" || bytes.HasSuffix(label, dpSuffix) || bytes.HasSuffix(label, dataSuffix)
}

var (
	rankSuffix = []byte("_rank")
	dpSuffix   = []byte("_dp_rank")
	dataSuffix = []byte("data_parallel_rank")
)

// splitName splits a line into a metric's name and what follows it, labels
// first. The newest text format may have the name, quoted, among the labels.
func splitName(line []byte) (name, rest []byte, ok bool) {
	line = bytes.TrimSpace(line)
	n := nameLength(line)
	if n == 0 {
		return quotedName(line)
	}
	name, rest = line[:n], line[n:]
	if len(rest) == 0 || rest[0] != '{' && rest[0] != ' ' && rest[0] != '\t' {
		return nil, nil, false
	}
	return name, bytes.TrimLeft(rest, " \t"), true
}

// quotedName finds the name in {"name",label="value"} 1, which it leaves among
// the labels: there it is the same for all series of the name.
func quotedName(line []byte) (name, rest []byte, ok bool) {
	if len(line) == 0 || line[0] != '{' {
		return nil, nil, false
	}
	for labels := line[1:]; ; {
		label, value, more, ok := nextLabel(labels)
		if !ok {
			return nil, nil, false
		}
		if value == nil {
			return label, line, true
		}
		labels = more
	}
}

// looksLikeSample tells samples from the words of a page that isn't one of
// metrics.
func looksLikeSample(rest []byte) bool {
	if len(rest) > 0 && rest[0] == '{' {
		end := labelsEnd(rest)
		if end < 0 {
			return false
		}
		rest = bytes.TrimLeft(rest[end+1:], " \t")
	}
	if len(rest) == 0 {
		return false
	}
	switch c := rest[0]; c {
	case '+', '-', '.', 'N', 'n', 'I', 'i': // signs, NaN, Inf
		return true
	default:
		return c >= '0' && c <= '9'
	}
}

// sampleOf splits "{labels} value timestamp # exemplar". The value is unknown
// if any of it is malformed.
func sampleOf(rest []byte) (sample, reading) {
	var s sample
	if len(rest) > 0 && rest[0] == '{' {
		end := labelsEnd(rest)
		if end < 0 {
			return s, reading{}
		}
		s.labels = rest[1:end]
		rest = rest[end+1:]
	}
	rest = bytes.TrimLeft(rest, " \t")
	if i := bytes.IndexAny(rest, " \t"); i >= 0 {
		rest = rest[:i]
	}
	v, ok := number(rest)
	return s, reading{v, ok}
}

// labelsEnd finds the brace that closes b's first one; -1 if there is none or
// a label is malformed.
func labelsEnd(b []byte) int {
	rest := b[1:]
	for {
		_, _, more, ok := nextLabel(rest)
		if !ok {
			break
		}
		rest = more
	}
	rest = bytes.TrimLeft(rest, ", \t")
	if len(rest) == 0 || rest[0] != '}' {
		return -1
	}
	return len(b) - len(rest)
}

// nextLabel splits the first label off b. Its name may be quoted; a quoted
// metric's name among the labels has no value, which is nil then.
func nextLabel(b []byte) (name, value, rest []byte, ok bool) {
	b = bytes.TrimLeft(b, ", \t")
	quoted := len(b) > 0 && b[0] == '"'
	v := b
	if quoted {
		if name, v, ok = cutQuoted(b); !ok {
			return nil, nil, b, false
		}
	} else {
		n := nameLength(b)
		if n == 0 {
			return nil, nil, b, false
		}
		name, v = b[:n], b[n:]
	}
	v = bytes.TrimLeft(v, " \t")
	if len(v) == 0 || v[0] != '=' {
		// What else may follow a metric's name keeps JSON out.
		if quoted && len(v) > 0 && (v[0] == ',' || v[0] == '}') {
			return name, nil, v, true
		}
		return nil, nil, b, false
	}
	value, rest, ok = cutQuoted(bytes.TrimLeft(v[1:], " \t"))
	if !ok {
		return nil, nil, b, false
	}
	return name, value, rest, true
}

// cutQuoted cuts at the quote that ends the one that b begins with. Only a
// backslash hides one, whatever it is in front of.
func cutQuoted(b []byte) (text, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, b, false
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return b[1:i], b[i+1:], true
		}
	}
	return nil, b, false
}

// value is the raw value of the label, empty if there is none.
func (s sample) value(label string) []byte {
	for rest := s.labels; ; {
		name, v, more, ok := nextLabel(rest)
		if !ok {
			return nil
		}
		if string(name) == label {
			return v
		}
		rest = more
	}
}

// key names the series, the same for copies of one number.
func (s sample) key() uint64 {
	return s.hash(func(name []byte) bool { return !tellsCopies(name) })
}

// engineKey names the engine that an info series is of.
func (s sample) engineKey() uint64 { return s.hash(identifies) }

// hash is a sum, as the order of labels means nothing.
func (s sample) hash(counts func(name []byte) bool) uint64 {
	var sum uint64
	for rest := s.labels; ; {
		name, v, more, ok := nextLabel(rest)
		if !ok {
			return sum
		}
		if counts(name) {
			// Both are hashed before they meet, so that neither a=b nor
			// other pairings of the same words are alike.
			sum += xxhash.Sum64(v)*0x9E3779B185EBCA87 ^ xxhash.Sum64(name)
		}
		rest = more
	}
}

// nameLength is the length of the metric or label name at b's start.
func nameLength(b []byte) int {
	for i, c := range b {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == ':'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(b)
}
