package vllmapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
