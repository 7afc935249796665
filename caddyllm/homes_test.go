package caddyllm

import (
	"testing"

	"github.com/cespare/xxhash/v2"
)

func TestHomesForgetWhatIsNotAskedForAndStayBounded(t *testing.T) {
	var h homes
	h.put(0, "none")
	if got := h.of(0); got != "" {
		t.Errorf("the key 0 has home %q", got)
	}
	h.put(1, "a")
	h.put(2, "b")
	for i := range uint64(5 * generation) {
		h.put(1000+i, "c")
		if i%1000 == 0 && h.of(1) != "a" {
			t.Fatalf("key 1 was asked for and is forgotten after %d others", i)
		}
	}
	if got := h.of(2); got != "" {
		t.Errorf("key 2 still has home %q", got)
	}
	if n := len(h.young) + len(h.old); n > 2*generation {
		t.Errorf("%d entries, want at most %d", n, 2*generation)
	}
}

func TestResponseInPath(t *testing.T) {
	want := xxhash.Sum64String("resp_1")
	for path, found := range map[string]bool{
		"/v1/responses/resp_1": true, "/llm/v1/responses/resp_1/cancel": true, "/v1/responses/resp_1/input_items": true,
		"/v1/responses": false, "/v1/responses/": false, "/responses/resp_2": false, "/v1/models": false,
	} {
		if got := responseInPath(path) == want; got != found {
			t.Errorf("responseInPath(%s) = that of resp_1: %v, want %v", path, got, found)
		}
	}
}

func TestTheIDOfAResponseIsFoundHoweverItArrives(t *testing.T) {
	for answer, id := range map[string]string{
		`{"id":"resp_1","object":"response","output":[{"id":"msg_2"}]}`: "resp_1",
		`{"object":"response", "id": "resp_2"}`:                         "resp_2",
		"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_3\",\"status\":\"in_progress\"}}\n\nevent: x\n\n": "resp_3",
	} {
		for _, step := range []int{1, 7, 1000} {
			var s idSeeker
			var got uint64
			for rest := answer; len(rest) > 0; {
				n := min(step, len(rest))
				if h := s.write([]byte(rest[:n])); h != 0 {
					got = h
				}
				rest = rest[n:]
			}
			if got != xxhash.Sum64String(id) {
				t.Errorf("%q, %d bytes at a time: not the id %s", answer, step, id)
			}
		}
	}
	var s idSeeker
	for range 100 {
		if h := s.write(make([]byte, 100)); h != 0 {
			t.Fatal("an id in zeros")
		}
	}
	if !s.done || cap(s.head) > 2*idHead {
		t.Errorf("looks on after %d bytes", cap(s.head))
	}
}
