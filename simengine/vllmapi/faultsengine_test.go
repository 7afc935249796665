package vllmapi

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestPagesOfMetricsAreScripted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		scrape := func() *recorded { return b.do(t.Context(), "GET", "/metrics", "") }
		text := "not a page"
		remove := b.fault(Fault{Kind: FaultMetrics, Body: &text, Status: 500, Header: map[string]string{"Content-Type": "text/html"}})
		if r := scrape(); r.Code != 500 || r.Body.String() != text || r.Header().Get("Content-Type") != "text/html" {
			t.Errorf("answer %d %q %v", r.Code, r.Body, r.Header())
		}
		remove()

		true1 := scrape().Body.String()
		if !strings.Contains(true1, "vllm:num_requests_running{") {
			t.Fatalf("the page is %q", true1)
		}
		remove = b.fault(Fault{Kind: FaultMetricsFrozen})
		b.post(textPath, stockBody)
		if got := scrape().Body.String(); got != true1 {
			t.Error("a frozen page changed")
		}
		remove()
		if got := scrape().Body.String(); got == true1 {
			t.Error("the page is still frozen")
		}

		gate := make(chan struct{})
		remove = b.fault(Fault{Kind: FaultMetrics, Wait: gate, Body: &text})
		time.AfterFunc(3*time.Second, func() { close(gate) })
		if r := scrape(); time.Since(r.begin) != 3*time.Second || r.Code != 200 || r.Body.String() != text {
			t.Errorf("answer %d %q after %v", r.Code, r.Body, time.Since(r.begin))
		}
		remove()

		b.fault(Fault{Kind: FaultMetrics, Cut: true, Body: &text, Count: 1})
		if r := scrape(); r.panicv != http.ErrAbortHandler || r.Body.String() != text {
			t.Errorf("ended with %v after %q", r.panicv, r.Body)
		}
		if r := scrape(); r.Code != 200 || r.panicv != nil {
			t.Errorf("answer %d after all faults", r.Code)
		}
		if n := len(b.journal()); n != 1 {
			t.Errorf("%d entries in the journal, want 1: scrapes are none", n)
		}
	})
}

func TestFaultsOfTheEngine(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		ask := func() time.Duration {
			r := b.post(textPath, stockBody)
			if r.panicv == nil {
				r.whole(t)
			}
			return time.Since(r.begin)
		}
		plain := ask()
		b.fault(Fault{Kind: FaultSlow, Factor: 3, At: time.Second, For: time.Second})
		b.fault(Fault{Kind: FaultPause, At: 3 * time.Second, For: time.Second})
		b.fault(Fault{Kind: FaultRestart, At: 5 * time.Second})
		begin := time.Now()
		at := func(d time.Duration) { time.Sleep(time.Until(begin.Add(d))) }
		for _, c := range []struct {
			name       string
			from, for_ time.Duration
		}{
			{"before", 500 * time.Millisecond, plain}, {"slow", 1100 * time.Millisecond, 3 * plain}, {"after", 2100 * time.Millisecond, plain},
			{"paused", 3500 * time.Millisecond, 500*time.Millisecond + plain}, {"resumed", 4500 * time.Millisecond, plain},
		} {
			at(c.from)
			if took := ask().Round(10 * time.Microsecond); took != c.for_.Round(10*time.Microsecond) {
				t.Errorf("%s: a request took %v, want %v", c.name, took, c.for_)
			}
		}
		at(4990 * time.Millisecond)
		r := b.post(textPath, `{"stream":true,`+stockBody[1:])
		if r.panicv != http.ErrAbortHandler {
			t.Errorf("a stream under a restart ended with %v", r.panicv)
		}
		if s := b.driver.Stats(); s.PromptTokens != 0 {
			t.Errorf("%d prompt tokens after a restart, want 0", s.PromptTokens)
		}
		if v := b.post(textPath, stockBody).whole(t); v.cached() != 0 {
			t.Errorf("%d tokens cached after a restart", v.cached())
		}
		b.idle()
	})
}

// Asleep, the engine loses what it had and lets new requests wait.
func TestASleepingServer(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.post(textPath, stockBody).whole(t)
		b.fault(Fault{Kind: FaultSleep, Level: 1, At: time.Second, For: 10 * time.Second})
		begin := time.Now()
		time.Sleep(2 * time.Second)
		if page := b.do(t.Context(), "GET", "/metrics", "").Body.String(); !strings.Contains(page, `model_name="m",sleep_state="weights_offloaded"} 1.0`) {
			t.Errorf("the page doesn't tell of the sleep: %s", page)
		}
		v := b.post(textPath, stockBody).whole(t)
		if took := time.Since(begin); took < 11*time.Second || took > 12*time.Second || v.cached() != 0 {
			t.Errorf("an answer came after %v with %d tokens cached; the sleep ends after 11s", took, v.cached())
		}
		if page := b.do(t.Context(), "GET", "/metrics", "").Body.String(); !strings.Contains(page, `model_name="m",sleep_state="awake"} 1.0`) {
			t.Error("the page doesn't tell of the awakening")
		}
	})
}
