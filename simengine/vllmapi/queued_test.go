package vllmapi

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A server that may hold four sequences turns the fifth away at once, choices
// counted one by one, counts that, and takes more when one has ended or its
// client has left.
func TestABoundOfTheQueueTurnsRequestsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, benchEngine, 1, func(c *Config) { c.MaxQueued = 4 })
		ask := func(n int) *recorded {
			return b.post(textPath, `{"prompt":"x","max_tokens":50,"ignore_eos":true,"n":`+string(rune('0'+n))+`}`)
		}
		go ask(3)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		for range 2 {
			if m := ask(2).refused(t, http.StatusServiceUnavailable, "Service Unavailable", ""); !strings.HasPrefix(m, "The engine is currently busy") {
				t.Errorf("turned away with %q", m)
			}
		}
		if r := b.post("/v1/embeddings", `{"input":["x","y"]}`); r.Code != http.StatusServiceUnavailable {
			t.Errorf("embeddings beside it: %d %s", r.Code, r.Body)
		}
		if r := ask(1); r.Code != http.StatusOK {
			t.Errorf("one more: %d %s", r.Code, r.Body)
		}
		synctest.Wait()
		if n := b.queued.Load(); n != 0 {
			t.Errorf("%d are counted when all have ended", n)
		}
		if r := ask(4); r.Code != http.StatusOK {
			t.Errorf("four at once: %d %s", r.Code, r.Body)
		}
		if r := ask(5); r.Code != http.StatusServiceUnavailable {
			t.Errorf("five at once: %d %s", r.Code, r.Body)
		}
		if page := b.do(t.Context(), http.MethodGet, "/metrics", "").Body.String(); !strings.Contains(page, `vllm:admission_rejections_total{model_name="m",reason="max_num_queued_reqs"} 4.0`) {
			t.Errorf("the page doesn't tell of four that were turned away: %s", page[strings.Index(page, "vllm:admission"):][:300])
		}
		if r := b.post("/v1/embeddings", `{"input":["x","y","z"]}`); r.Code != http.StatusOK {
			t.Errorf("embeddings of an idle server: %d %s", r.Code, r.Body)
		}
		if n := b.queued.Load(); n != 0 {
			t.Errorf("%d are counted when all have ended", n)
		}
		b.idle()
	})
}
