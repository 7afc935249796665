package caddyllm

import "bytes"

// comments finds where a stream of events goes on from comments: lines that
// begin with a colon, which keep a connection alive and are no token. The zero
// value is at the stream's beginning.
type comments struct {
	within bool // a comment, whose line hasn't ended
}

// end reports whether p, the next bytes of a stream of nothing but comments so
// far, has anything else.
func (c *comments) end(p []byte) bool {
	for len(p) > 0 {
		if c.within {
			eol := bytes.IndexAny(p, "\r\n")
			if eol < 0 {
				return false
			}
			c.within, p = false, p[eol:]
		}
		switch p[0] {
		case '\r', '\n':
		case ':':
			c.within = true
		default:
			return true
		}
		p = p[1:]
	}
	return false
}
