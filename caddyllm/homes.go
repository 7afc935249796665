package caddyllm

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/cespare/xxhash/v2"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// homes remembers which upstream has what can't be told from a prompt: a
// session, or a response that a later request goes on from. Keys are hashes, so
// nothing of a client's is kept. It is safe for concurrent use.
//
// It has two generations: what was asked for since the younger one began stays,
// the rest is forgotten when that is full.
type homes struct {
	mu         sync.Mutex
	young, old map[uint64]string // upstreams' dial addresses
}

// generation bounds each of the two, entries of some 50 bytes.
const generation = 1 << 16

// put notes the upstream of a key; the key 0 stands for none.
func (h *homes) put(key uint64, upstream string) {
	if key == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keep(key, upstream)
}

func (h *homes) keep(key uint64, upstream string) {
	if h.young == nil || len(h.young) >= generation {
		h.young, h.old = make(map[uint64]string), h.young
	}
	h.young[key] = upstream
}

// of is the upstream of a key, empty if there is none.
func (h *homes) of(key uint64) string {
	if key == 0 {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if up, ok := h.young[key]; ok {
		return up
	}
	up, ok := h.old[key]
	if ok {
		h.keep(key, up)
	}
	return up
}

// peek is the upstream of a key, as of finds it, without keeping it any longer.
func (h *homes) peek(key uint64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if up, ok := h.young[key]; ok {
		return up
	}
	return h.old[key]
}

// narrow leaves only the target that issued the response which a prompt goes on
// from, since no other has it. Where that is unknown, gone or tried, all stay.
func narrow(home string, targets []route.Target) (from, to int) {
	if home == "" {
		return 0, len(targets)
	}
	i := slices.IndexFunc(targets, func(t route.Target) bool { return t.ID == home && !t.Tried })
	if i < 0 {
		return 0, len(targets)
	}
	return i, i + 1
}

// issuer is the upstream that has the response which the path asks for, nil
// where there is none, or it isn't known, available and untried.
func (f *flight) issuer(pool reverseproxy.UpstreamPool, r *http.Request) *reverseproxy.Upstream {
	defer f.policy.catch(inDecision)
	home := f.policy.shared.responses.of(responseInPath(r.URL.Path))
	if home == "" || slices.Contains(f.tried, home) {
		return nil
	}
	for _, u := range pool {
		if u.Dial == home && u.Available() {
			return u
		}
	}
	return nil
}

// responseInPath is a hash of the response that a path names, as in
// /v1/responses/resp_1/cancel, or 0.
func responseInPath(path string) uint64 {
	const folder = "/responses/"
	i := strings.LastIndex(path, folder)
	if i < 0 {
		return 0
	}
	id, _, _ := strings.Cut(path[i+len(folder):], "/")
	if id == "" {
		return 0
	}
	return xxhash.Sum64String(id)
}

// idHead is how far into an answer its id is looked for, bytes. It is the first
// member of a whole answer, and in the first event of a stream.
const idHead = 2048

// idSeeker finds the id of a response in an answer that passes.
type idSeeker struct {
	head []byte
	done bool
}

var idKey = []byte(`"id":`)

// write looks at the next bytes and returns a hash of the id once it is whole,
// else 0.
func (s *idSeeker) write(p []byte) uint64 {
	if s.done {
		return 0
	}
	s.head = append(s.head, p[:min(len(p), idHead-len(s.head))]...)
	s.done = len(s.head) == idHead
	_, after, ok := bytes.Cut(s.head, idKey)
	if !ok {
		return 0
	}
	after, ok = bytes.CutPrefix(bytes.TrimLeft(after, " "), []byte{'"'})
	if !ok {
		return 0
	}
	id, _, ok := bytes.Cut(after, []byte{'"'})
	if !ok || len(id) == 0 {
		return 0
	}
	s.done, s.head = true, nil
	return xxhash.Sum64(id)
}
