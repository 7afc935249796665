package vllmapi

import (
	"crypto/sha256"
	"fmt"
	"math"
	"net/http"
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
