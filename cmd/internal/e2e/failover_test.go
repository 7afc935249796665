package e2e

import (
	"bytes"
	"net/http"
	"slices"
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
			bodies := [][]byte{
				chat(user("short"), nil),
				chat(user(long), nil), // more than is kept
				[]byte("no JSON"),
			}
			for _, body := range bodies {
				for _, chunked := range []bool{false, true} {
					req, err := http.NewRequest(http.MethodPost, "http://gateway/v1/chat/completions", bytes.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Content-Type", "application/json")
					if chunked {
						req.ContentLength = -1
					}
					whole := func() (n int) {
						for _, e := range backup.seen() {
							if e.readErr == nil && bytes.Equal(e.body, body) {
								n++
							}
						}
						return n
					}
					before := whole()
					a, err := g.do(req)
					if err != nil {
						t.Fatal(err)
					}
					got := whole() - before
					if len(body) > 64<<10 && c.fault != nil {
						// It was sent, and its end is nowhere any more.
						if a.status < 500 {
							t.Errorf("%d bytes, chunked %v: status %d, want an error", len(body), chunked, a.status)
						}
						continue
					}
					if got != 1 {
						t.Errorf("%d bytes, chunked %v: the backup got %d whole requests, status %d: %.200s", len(body), chunked, got, a.status, a.body)
					} else if want := body[0] == '{'; want != (a.status == 200) {
						t.Errorf("%d bytes, chunked %v: status %d", len(body), chunked, a.status)
					}
				}
			}
			for _, e := range backup.seen() {
				if e.readErr == nil && !slices.ContainsFunc(bodies, func(b []byte) bool { return bytes.Equal(b, e.body) }) {
					t.Errorf("the backup takes %d bytes for a whole body", len(e.body))
				}
			}
			g.idle()
		})
	}
}

// A backup of another policy gets the body that nobody has read: of a pool that is
// known to be dead none is asked for.
func TestABackupOfAnyPolicyGetsTheBodyOfADeadPool(t *testing.T) {
	backup := newEngines(t, 1)[0]
	g := site{
		upstreams: []string{deadAddress(t)}, proxy: "fail_duration 1h",
		before: "handle_errors {\n reverse_proxy " + backup.addr + " {\n lb_policy first\n}\n}",
	}.start(t)
	g.get("/v1/models") // nobody answers, and that is remembered
	body := chat(user(text("unread", 20_000)), nil)
	for _, length := range []int64{int64(len(body)), -1} {
		req, err := http.NewRequest(http.MethodPost, "http://gateway/v1/chat/completions", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		req.Header.Set("Content-Type", "application/json")
		before := backup.count()
		a, err := g.do(req)
		if err != nil {
			t.Fatal(err)
		}
		seen := backup.seen()
		if a.status != 200 || len(seen) != before+1 || !bytes.Equal(seen[before].body, body) || seen[before].length != length {
			t.Errorf("a body of length %d: status %d, and %d requests at the backup: %.200s", length, a.status, len(seen)-before, a.body)
		}
	}
	g.idle()
}
