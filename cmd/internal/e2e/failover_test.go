package e2e

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

// A pool that can't serve is backed by another one, in the ways that Caddy has
// for it: plain Caddy leaves a body that it could not send to the next proxy, so
// this policy, which has read it, must hand it on. What can't be made whole again
// is no body.
func TestFailoverToAnotherPoolTakesTheBodyAlong(t *testing.T) {
	engines := newEngines(t, 2)
	backup := engines[1]
	const second = "reverse_proxy BACKUP {\n lb_policy llm_prefix {\n state backup\n max_body 64KiB\n expose X-LLM\n}\n}\n"
	long := text("long", 200_000)
	for _, c := range []struct {
		name     string
		upstream string
		proxy    string
		before   string
		fault    func(http.ResponseWriter, *http.Request) bool
	}{
		{name: "the first pool is dead", upstream: deadAddress(t), before: "handle_errors {\n " + second + "}"},
		{name: "the first pool is known to be dead", upstream: deadAddress(t), proxy: "fail_duration 1h", before: "handle_errors {\n " + second + "}"},
		{name: "the first pool is closed", upstream: engines[0].addr, proxy: "@busy status 503\nhandle_response @busy {\n " + second + "}",
			fault: status(http.StatusServiceUnavailable)},
	} {
		t.Run(c.name, func(t *testing.T) {
			engines[0].fail(c.fault)
			named := strings.NewReplacer("BACKUP", backup.addr)
			g := site{
				upstreams: []string{c.upstream}, policy: "max_body 64KiB",
				proxy: named.Replace(c.proxy), before: named.Replace(c.before),
			}.start(t)
			for _, body := range [][]byte{
				chat(user("short"), nil),
				chat(user(long), nil), // more than is kept
				[]byte("no JSON"),
			} {
				for _, chunked := range []bool{false, true} {
					req, err := http.NewRequest(http.MethodPost, "http://gateway/v1/chat/completions", bytes.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Content-Type", "application/json")
					if chunked {
						req.ContentLength = -1
					}
					before := backup.count()
					a, err := g.do(req)
					if err != nil {
						t.Fatal(err)
					}
					seen := backup.seen()[before:]
					if len(body) > 64<<10 && c.fault != nil {
						// It was sent, and its end is nowhere any more.
						if len(seen) > 0 && seen[0].readErr == nil || a.status < 500 {
							t.Errorf("%d bytes, chunked %v: status %d and %d requests at the backup, want an error", len(body), chunked, a.status, len(seen))
						}
						continue
					}
					if len(seen) != 1 || !bytes.Equal(seen[0].body, body) {
						t.Errorf("%d bytes, chunked %v: the backup got %d requests, status %d: %.200s", len(body), chunked, len(seen), a.status, a.body)
					} else if want := body[0] == '{'; want != (a.status == 200) {
						t.Errorf("%d bytes, chunked %v: status %d", len(body), chunked, a.status)
					}
				}
			}
			g.idle()
		})
	}
}
