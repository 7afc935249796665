package vllmapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const stockBody = `{"prompt":"some prompt","max_tokens":10,"ignore_eos":true}`

func (b *bench) fault(f Fault) (remove func()) {
	b.t.Helper()
	remove, err := b.Faults().Add(f)
	if err != nil {
		b.t.Fatal(err)
	}
	return remove
}

func TestTheJournalTellsOfRequestsButNotTheirText(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		begin := time.Now()
		body := `{"prompt":` + idPrompt(1, 40) + `,"max_tokens":10,"ignore_eos":true}`
		b.post(textPath, body)
		b.post(textPath, body)
		b.do(t.Context(), "GET", "/metrics", "")
		b.do(t.Context(), "GET", "/v1/models", "")
		entries := b.journal()
		if len(entries) != 3 {
			t.Fatalf("%d entries, want 3: %+v", len(entries), entries)
		}
		want := Entry{
			Time: begin.Add(entries[0].Time.Sub(begin)), Method: "POST", Path: textPath,
			ContentLength: int64(len(body)), BodySHA256: sha256.Sum256([]byte(body)), BodyLength: int64(len(body)),
			Model: "m", PromptTokens: 40, CachedTokens: 0, OutputTokens: 10, Status: 200,
		}
		if fmt.Sprint(entries[0]) != fmt.Sprint(want) {
			t.Errorf("entry %+v\nwant %+v", entries[0], want)
		}
		if entries[1].CachedTokens != 32 || !entries[1].Time.After(begin) {
			t.Errorf("second entry %+v", entries[1])
		}
		if e := entries[2]; e.Path != "/v1/models" || e.Status != 200 || e.BodyLength != 0 || e.Model != "" {
			t.Errorf("third entry %+v", e)
		}
	})
}

func TestFaultsThatHitRequests(t *testing.T) {
	big := `{"pad":"` + strings.Repeat(" ", 10_000) + `",` + stockBody[1:]
	for _, c := range []struct {
		name   string
		fault  Fault
		body   string
		status int  // 0: none was sent
		cut    bool // the connection
		has    string
		read   int64 // bytes of the body
	}{
		{"status", Fault{Kind: FaultStatus, Status: 503, Message: "busy", Header: map[string]string{"Retry-After": "7"}}, stockBody, 503, false,
			`{"error":{"message":"busy","type":"InternalServerError","param":null,"code":503}}`, 0},
		{"default status", Fault{Kind: FaultStatus}, stockBody, 500, false, "simulated fault", 0},
		{"close", Fault{Kind: FaultClose}, stockBody, 0, true, "", 0},
		{"half the body", Fault{Kind: FaultCloseBody}, big, 0, true, "", int64(len(big) / 2)},
		{"before the first token", Fault{Kind: FaultCloseStream}, `{"stream":true,` + stockBody[1:], 200, true, "", -1},
		{"after four tokens", Fault{Kind: FaultCloseStream, Tokens: 4}, `{"stream":true,` + stockBody[1:], 200, true, "data: ", -1},
		{"an answer in one piece", Fault{Kind: FaultCloseStream, Tokens: 4}, stockBody, 0, true, "", -1},
		{"error event", Fault{Kind: FaultStreamError, Tokens: 4, Message: "no"}, `{"stream":true,` + stockBody[1:], 200, false,
			"data: {\"error\":{\"message\":\"no\",\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}\n\ndata: [DONE]\n\n", -1},
		{"error instead of an answer", Fault{Kind: FaultStreamError, Tokens: 4}, stockBody, 500, false, "simulated fault", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				remove := b.fault(c.fault)
				r := b.post(textPath, c.body)
				if cut := r.panicv == http.ErrAbortHandler; cut != c.cut || !cut && r.panicv != nil {
					t.Errorf("the handler ended with %v", r.panicv)
				}
				e := b.last()
				if e.Status != c.status || e.Aborted != c.cut || !strings.Contains(r.Body.String(), c.has) {
					t.Errorf("answer %q, entry %+v", r.Body, e)
				}
				if c.read >= 0 && e.BodyLength != c.read {
					t.Errorf("%d bytes of the body were read, want %d", e.BodyLength, c.read)
				}
				if want := c.fault.Header["Retry-After"]; r.Header().Get("Retry-After") != want {
					t.Errorf("Retry-After %q, want %q", r.Header().Get("Retry-After"), want)
				}
				if c.status == 200 {
					if n := strings.Count(r.Body.String(), `"choices"`); n != c.fault.Tokens {
						t.Errorf("%d events before the fault, want %d: %q", n, c.fault.Tokens, r.Body)
					}
				}
				b.idle()
				remove()
				if r := b.post(textPath, stockBody); r.Code != 200 || r.panicv != nil {
					t.Errorf("after the fault: %d %q", r.Code, r.Body)
				}
				b.idle()
			})
		})
	}
}

func TestAFaultInTheMiddleIsExact(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		whole := b.post(textPath, stockBody).whole(t).Choices[0].Text
		for tokens := range 10 {
			remove := b.fault(Fault{Kind: FaultStreamError, Tokens: tokens})
			r := b.post(textPath, `{"stream":true,`+stockBody[1:])
			if got := said(r.events(t), 0); got != whole[:4*tokens] {
				t.Errorf("after %d tokens the text is %q, want %q", tokens, got, whole[:4*tokens])
			}
			remove()
		}
	})
}

// With an engine that is faster than its readers all tokens come at once. A
// fault in the middle lets through no more than its own all the same.
func TestAFaultInTheMiddleOfAGulp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, benchEngine, 1)
		for _, stream := range []bool{true, false} {
			w := httptest.NewRecorder()
			j := b.textJob(w, stockBody)
			j.fault = &armedFault{Fault: Fault{Kind: FaultStreamError, Tokens: 3}}
			outputs, err := b.submit(j)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // the reply is whole by then
			if stream {
				j.sendStream(t.Context(), outputs)
			} else {
				j.sendWhole(t.Context(), outputs)
			}
			text := w.Body.String()
			if n := strings.Count(text, `"choices"`); stream && n != 3 || !stream && n != 0 {
				t.Errorf("stream %v: %d events with text: %s", stream, n, text)
			}
			if shown := j.sequences[0].text()[8:16]; !strings.Contains(text, "simulated fault") || strings.Contains(text, shown) || strings.Contains(text, `"length"`) {
				t.Errorf("stream %v: %s", stream, text)
			}
		}
	})
}

func TestWhenFaultsSetInAndEnd(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		name  string
		fault Fault
		want  string // of a request each 100 ms: x is hit
	}{
		{"always", Fault{}, "xxxxxxxx"},
		{"the next two", Fault{Count: 2}, "xx......"},
		{"after three", Fault{AfterRequests: 3}, "...xxxxx"},
		{"after three, two", Fault{AfterRequests: 3, Count: 2}, "...xx..."},
		{"from a time on", Fault{At: 250 * ms}, "...xxxxx"},
		{"for a while", Fault{At: 250 * ms, For: 200 * ms}, "...xx..."},
		{"after two, for a while", Fault{AfterRequests: 2, For: 250 * ms}, "..xxx..."},
		{"time and requests", Fault{At: 250 * ms, AfterRequests: 5}, ".....xxx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				c.fault.Kind = FaultStatus
				b.fault(c.fault)
				b.fault(Fault{Kind: FaultMetricsFrozen, AfterRequests: 1000})
				got := ""
				for range len(c.want) {
					begin := time.Now()
					mark := "."
					if b.post(textPath, `{"prompt":"x","max_tokens":1}`).Code == 500 {
						mark = "x"
					}
					got += mark
					b.do(t.Context(), "GET", "/metrics", "") // doesn't count
					time.Sleep(100*ms - time.Since(begin))
				}
				if got != c.want {
					t.Errorf("hits are %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestHangingRequestsEndWithTheFaultOrTheClient(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		remove := b.fault(Fault{Kind: FaultHang})
		ctx, leave := context.WithTimeout(t.Context(), time.Hour)
		defer leave()
		r := b.do(ctx, http.MethodPost, textPath, stockBody)
		if took := time.Since(r.begin); took != time.Hour || b.last().Status != 0 {
			t.Errorf("ended after %v with %+v", took, b.last())
		}
		time.AfterFunc(time.Minute, remove)
		r = b.post(textPath, stockBody)
		if took := time.Since(r.begin); took != time.Minute || r.panicv != http.ErrAbortHandler {
			t.Errorf("ended after %v with %v", took, r.panicv)
		}
		b.fault(Fault{Kind: FaultHang, For: 5 * time.Second})
		r = b.post(textPath, stockBody)
		if took := time.Since(r.begin); took != 5*time.Second || r.panicv != http.ErrAbortHandler {
			t.Errorf("ended after %v with %v", took, r.panicv)
		}
		b.idle()
	})
}

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

func TestFaultsThatMakeNoSense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, benchEngine, 1)
		text := ""
		for _, f := range []Fault{
			{}, {Kind: "x"}, {Kind: FaultStatus, Status: 99}, {Kind: FaultStatus, Status: 600}, {Kind: FaultHang, At: -1},
			{Kind: FaultClose, Count: -1}, {Kind: FaultSlow}, {Kind: FaultSlow, Factor: -1}, {Kind: FaultPause, Count: 1},
			{Kind: FaultRestart, AfterRequests: 1}, {Kind: FaultCloseStream, Tokens: -1}, {Kind: FaultDelay}, {Kind: FaultDelay, Delay: -1},
			{Kind: FaultClose, Share: 1.1}, {Kind: FaultClose, Share: math.NaN()}, {Kind: FaultSleep, Level: 3}, {Kind: FaultSleep, Level: -1},
			{Kind: FaultHang, Tokens: 3}, {Kind: FaultMetricsFrozen, Body: &text}, {Kind: FaultClose, Status: 500}, {Kind: FaultSlow, Factor: 2, Share: 0.5},
			{Kind: FaultRefuse}, // nothing listens
		} {
			if _, err := b.Faults().Add(f); err == nil {
				t.Errorf("Add(%+v) = nil", f)
			}
		}
		b.Faults().Clear()
	})
}

// A fault that hits a share hits that share, and the same requests each time.
func TestAFaultThatHitsAShare(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		hits := func() string {
			b.Faults().Clear()
			b.Faults().added = 0
			b.fault(Fault{Kind: FaultStatus, Share: 0.25})
			s := ""
			for range 200 {
				s += string(".x"[min(1, b.post(textPath, `{"prompt":"x","max_tokens":1}`).Code/500)])
			}
			return s
		}
		first := hits()
		if n := strings.Count(first, "x"); n < 30 || n > 70 {
			t.Errorf("%d of 200 were hit, want about 50", n)
		}
		if again := hits(); again != first {
			t.Errorf("another run hits\n%s, the first hit\n%s", again, first)
		}
	})
}

func TestADelayedAnswerIsOtherwiseWhole(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		begin := time.Now()
		b.post(textPath, stockBody).whole(t)
		plain := time.Since(begin)
		b.fault(Fault{Kind: FaultDelay, Delay: 3 * time.Second, Count: 1})
		begin = time.Now()
		b.post(textPath, stockBody).whole(t)
		if took := time.Since(begin); took != 3*time.Second+plain {
			t.Errorf("took %v, want 3s more than %v", took, plain)
		}
		b.fault(Fault{Kind: FaultMetrics, Delay: 2 * time.Second})
		begin = time.Now()
		if r := b.do(t.Context(), "GET", "/metrics", ""); time.Since(begin) != 2*time.Second || r.Code != 200 || !strings.Contains(r.Body.String(), "vllm:num_requests_running") {
			t.Errorf("a slow page came after %v with %d", time.Since(begin), r.Code)
		}
	})
}

// Everything comes but the word that it is all.
func TestAStreamWithoutDone(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		whole := b.post(textPath, `{"stream":true,`+stockBody[1:]).Body.String()
		b.fault(Fault{Kind: FaultNoDone})
		r := b.post(textPath, `{"stream":true,`+stockBody[1:])
		cut, _ := strings.CutSuffix(whole, "data: [DONE]\n\n")
		if n := strings.Count(r.Body.String(), "data: "); r.panicv != nil || n != strings.Count(cut, "data: ") || strings.Contains(r.Body.String(), "[DONE]") {
			t.Errorf("ended with %v after %q", r.panicv, r.Body)
		}
	})
	for _, c := range []struct{ in, out string }{
		{"data: {}\n\ndata: [DONE]\n\n", "data: {}\n\n"}, {"data: [DONE]\n\n", ""}, {"data: {}\n\n", "data: {}\n\n"}, {"data: [DONE]", "data: [DONE]"},
		{"event: x\ndata: {}\n\nevent: message_stop\ndata: {}\n\n", "event: x\ndata: {}\n\n"}, {"", ""}, {"\n\n", "\n\n"},
	} {
		w := httptest.NewRecorder()
		if n, err := (&undone{w}).Write([]byte(c.in)); n != len(c.in) || err != nil || w.Body.String() != c.out {
			t.Errorf("of %q comes %q, %d, %v; want %q", c.in, w.Body, n, err, c.out)
		}
	}
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
