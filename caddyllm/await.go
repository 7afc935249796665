package caddyllm

import (
	"io"
	"net/http"
)

// firstBytes is how much of a stream may be read before it is passed on: more
// than the first event has as a rule. A longer one is only read in two pieces.
const firstBytes = 1 << 10

// awaited is the body of a stream that has begun.
type awaited struct {
	*observedBody
	first []byte // read, and not yet passed on
}

func (b *awaited) Read(p []byte) (int, error) {
	if len(b.first) == 0 {
		b.first = nil
		return b.observedBody.Read(p)
	}
	n := copy(p, b.first)
	b.first = b.first[n:]
	return n, nil
}

// await waits for a stream's first bytes. Engines send the header as soon as
// they have taken a request, and nothing until it has left their queue. If the
// engine dies meanwhile, the client has been told nothing yet: that is a failed
// round trip, which the proxy may try elsewhere and otherwise calls by its
// name, and not an empty answer with a good status.
func (b *observedBody) await(res *http.Response) error {
	first := make([]byte, firstBytes)
	for {
		n, err := b.Read(first)
		if n > 0 || err == io.EOF {
			// A body repeats how it ended.
			res.Body = &awaited{b, first[:n]}
			return nil
		}
		if err != nil {
			_ = b.ReadCloser.Close()
			return err
		}
	}
}
