package caddyllm

import "testing"

// A first token is what isn't a comment, wherever reads cut the stream.
func TestCommentsAreNoFirstToken(t *testing.T) {
	for _, tt := range []struct {
		stream string
		begins int // of what isn't a comment; -1: nothing does
	}{
		{"", -1},
		{": keep-alive\n\n", -1},
		{":\r\n\r\n: a: b\r\n", -1},
		{": waits", -1},
		{"data: {}\n\n", 0},
		{": waits\n\ndata: {}\n\n", 9},
		{"\n\n:a\r:b\revent: x\n", 8},
		{": data: no\n\n:\nid: 1\n", 14},
	} {
		for cut := range len(tt.stream) + 1 {
			var c comments
			first, second := c.end([]byte(tt.stream[:cut])), false
			if !first {
				second = c.end([]byte(tt.stream[cut:]))
			}
			if want := tt.begins >= 0 && cut > tt.begins; first != want {
				t.Errorf("%q, cut at %d: the first part begins the answer: %v, want %v", tt.stream, cut, first, want)
			}
			if got, want := first || second, tt.begins >= 0; got != want {
				t.Errorf("%q, cut at %d: the answer begins: %v, want %v", tt.stream, cut, got, want)
			}
		}
	}
}
