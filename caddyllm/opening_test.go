package caddyllm

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// What an answer begins with, wherever reads cut it.
func TestOnlyWhatWasComputedIsAFirstToken(t *testing.T) {
	const (
		ping    = "event: ping\ndata: {\"type\": \"ping\"}\n\n"
		created = "event: response.created\ndata: {\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\",\"error\":null},\"sequence_number\":0,\"type\":\"response.created\"}\n\n"
		working = "event: response.in_progress\r\ndata: {\"response\":{\"id\":\"resp_1\"}}\r\n\r\n"
		delta   = "event: response.output_text.delta\ndata: {\"delta\":\"a\"}\n\n"
	)
	for _, tt := range []struct {
		name, kind, text string
		want             sign
		at               int // the fewest bytes that tell it
	}{
		{"nothing", "events", "", undecided, 0},
		{"comments alone", "events", ": keep-alive\n\n:\r\n\r\n: a: b\r\n", undecided, 0},
		{"a comment without an end", "events", ": waits", undecided, 0},
		{"a chunk of a chat", "events", `data: {"id":"x","choices":[]}` + "\n\n", computed, len(`data: {"id":`)},
		{"a chunk behind a comment", "events", ": waits\n\ndata: {\"id\":\"x\"}\n\n", computed, len(": waits\n\ndata: {\"id\":")},
		{"no space behind the colon", "events", `data:{"choices":[]}`, computed, len(`data:{"choices":`)},
		{"the end at once", "events", "data: [DONE]\n\n", computed, len("data: [")},
		{"empty data, an id and a time to retry", "events", "data:\n\ndata: \n\ndata\n\nid: 1\nretry: 5\n\n", undecided, 0},
		{"no events at all", "events", "Internal Server Error", computed, len("Intern")},
		{"pings", "events", ping + ping, undecided, 0},
		{"pings without a name", "events", strings.Repeat("data: {\"type\":\"ping\"}\n\n", 2), undecided, 0},
		{"a message behind a ping", "events", ping + "event: message_start\ndata: {\"type\":\"message_start\"}\n\n", computed, len(ping + "event: message_start\ndata: {\"type\":\"message_start\"")},
		{"a response that was accepted", "events", created + working, undecided, 0},
		{"a response that was accepted, by type", "events", "data: {\"type\":\"response.created\",\"response\":{}}\n\n", undecided, 0},
		{"its first token", "events", created + working + delta, computed, len(created + working + "event: response.output_text.delta\ndata: {\"delta\":")},
		{"a response that failed", "events", created + "event: response.failed\n", errored, len(created + "event: response.failed\n")},
		{"an error in a stream", "events", `data: {"error": {"message":"no","code":503}}` + "\n\ndata: [DONE]\n\n", errored, len(`data: {"error": {`)},
		{"an error in CR alone", "events", ":\r\rdata: {\"error\":\"no\"}\r\r", errored, len(":\r\rdata: {\"error\":\"")},
		{"an error by its name", "events", "event: error\ndata: {\"message\":\"no\"}\n\n", errored, len("event: error\n")},
		{"an older vLLM's", "events", `data: {"object":"error","message":"no"}`, errored, len(`data: {"object":"error"`)},
		{"no error", "events", `data: {"error":null,"choices":[]}`, computed, len(`data: {"error":n`)},
		{"a long line", "events", "data: {" + strings.Repeat(" ", 200) + "\"error\"", computed, openingLine},

		{"a whole answer", "", `{"id":"x","choices":[]}`, computed, len(`{"id":`)},
		{"a whole error", "", "\n{ \"error\" : {\"code\":429}}", errored, len("\n{ \"error\" : {")},
		{"Anthropic's error", "", `{"type":"error","error":{}}`, errored, len(`{"type":"error"`)},
		{"a message", "", `{"type":"message"}`, computed, len(`{"type":"message"`)},
		{"an error of Ollama", "", `{"error":"model not found"}`, errored, len(`{"error":"`)},
		{"text", "", "error", computed, 2},
		{"white space before an answer", "", strings.Repeat(" \n", 100) + `{"id":"x"}`, computed, 200 + len(`{"id":`)},
		{"white space before an error", "", strings.Repeat("\n", 70) + `{"error":"no"}`, errored, 70 + len(`{"error":"`)},
		{"white space alone", "", strings.Repeat(" ", 300), undecided, 0},
		{"events of another type", "", ": waits\n\ndata: {\"id\":\"x\"}\n\n", computed, len(": waits\n\ndata: {\"id\":")},
		{"an error in events of another type", "", "event: error\ndata: {}\n\n", errored, len("event: error\n")},
		{"pings of another type", "", ping, undecided, 0},
		{"a text that begins like events", "", "dating", computed, len("dati")},
		{"a list", "", `[{"error":1}]`, computed, 1},
		{"a number for a type", "", `{"type":1}`, computed, len(`{"type":1`)},
		{"an answer that ends early", "", `{}`, computed, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for cut := range len(tt.text) + 1 {
				o := opening{events: tt.kind == "events"}
				said := o.read([]byte(tt.text[:cut]))
				if want := cut >= tt.at && tt.want != undecided; (said != undecided) != want {
					t.Errorf("cut at %d of %d, the first part tells %v; want it told at %d", cut, len(tt.text), said, tt.at)
				}
				if said == undecided {
					said = o.read([]byte(tt.text[cut:]))
				}
				if said != tt.want {
					t.Errorf("cut at %d, it tells %v, want %v", cut, said, tt.want)
				}
			}
		})
	}
}

// An error's code tells whose fault it was.
func TestErrorsInsideAnAnswerHaveACode(t *testing.T) {
	for text, want := range map[string]int{
		`data: {"error":{"message":"a \"code\": 5","type":"x","code":400}}`: 400,
		`{"error":{"code": "429"}}`:                                         429,
		`{"error":{"code":null}}`:                                           0,
		`{"error":"no"}`:                                                    0,
		`{"error":{"code":"server_error"}}`:                                 0,
		`{"error":{"code":99999999999999999}}`:                              9999,
		`{"code":`:                                                          0,
	} {
		if got := errorCode([]byte(text)); got != want {
			t.Errorf("errorCode(%s) = %d, want %d", text, got, want)
		}
	}
}

// An answer that broke off says so at its end, and whose fault it was.
func TestAnswersThatBreakOffSaySo(t *testing.T) {
	const token = `data: {"id":"x","choices":[{"delta":{"content":"\n\ndata: {\"error\": 1}"}}]}` + "\n\n"
	for text, want := range map[string]bool{
		token + "data: [DONE]\n\n": false,
		token + `data: {"error": {"message": "EngineCore died", "type": "InternalServerError", "code": 500}}` + "\n\ndata: [DONE]\n\n": true,
		token + `data: {"error": {"message": "no", "type": "BadRequestError", "code": 400}}` + "\n\ndata: [DONE]\n\n":                  false,
		token + `data: {"error":null,"choices":[]}` + "\n\n":                                                                           false,
		token + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n":                               true,
		token + "event: error\r\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\"}}\r\n\r\n":                    false,
		token + "event: response.failed\ndata: {\"response\":{\"error\":{\"code\":\"server_error\"}}}\n\n":                             true,
		token + `data: {"error":false,"choices":[]}` + "\n\n: ping\n\n":                                                                false,
		token + `data: { "error" : {"code": 500}}` + "\n\n: ping\n\ndata: [DONE]\n\n":                                                  true,
		token + `data: {"error":{"code":500}}` + "\n\n" + token:                                                                        false,
		`":{"code":500}}` + "\n\ndata: [DONE]\n\n":                                                                                     false,
		token + `data: {"error":"out of memory","error_type":"generation"}` + "\n\n":                                                   true,
	} {
		if got := brokeOff([]byte(text)); got != want {
			t.Errorf("brokeOff(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestErrorsWithoutACodeBlameByTheirType(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`: false,
		`{"error":{"code":"context_length_exceeded","type":"x"}}`:                                  false,
		`data:{"error":"Input validation error","error_type":"validation"}`:                        false,
		`{"error":{"message":"\"invalid_request_error\"","type":"server_error"}}`:                  true,
		`{"error":{"type":"invalid_request_error","code":503}}`:                                    true,
		`{"error":"model runner has stopped"}`:                                                     true,
	} {
		if got := blamesEngine([]byte(text)); got != want {
			t.Errorf("blamesEngine(%s) = %v, want %v", text, got, want)
		}
	}
}

func FuzzOpening(f *testing.F) {
	for _, seed := range []string{": a\n\ndata: {\"error\":1}", "event: ping\r\ndata: x\r\n\r\n", "data: {\"type\":\"x\"}", "{\"object\":\"error\"", "\r\n\r"} {
		f.Add(seed, true, 3)
		f.Add(seed, false, 1)
	}
	f.Fuzz(func(t *testing.T, text string, events bool, cut int) {
		whole, parts := opening{events: events}, opening{events: events}
		want := whole.read([]byte(text))
		cut = max(cut, 1)
		got := undecided
		for rest := text; got == undecided && len(rest) > 0; {
			n := min(cut, len(rest))
			got, rest = parts.read([]byte(rest[:n])), rest[n:]
		}
		if got != want {
			t.Errorf("%q in parts of %d tells %v, as a whole %v", text, cut, got, want)
		}
	})
}

// A recording of silence is written down as nothing, which is no failure of the
// engine; nor is nothing in an answer of another status, but in that of a chat it
// is.
func TestWhereNothingIsAnAnswer(t *testing.T) {
	for _, x := range []struct {
		kind   prompt.Kind
		status int
		want   route.End
	}{
		{prompt.Audio, http.StatusOK, route.Completed},
		{prompt.Chat, http.StatusOK, route.Failed},
		{prompt.Chat, http.StatusNoContent, route.Completed},
	} {
		a := &attempt{flight: &flight{kind: x.kind}, choice: choice{prompt: true}}
		b := newObservedBody(&http.Response{StatusCode: x.status, Body: http.NoBody}, a, nil)
		if got := b.judge(route.Completed); got != x.want {
			t.Errorf("nothing for %v with status %d ends as %v, want %v", x.kind, x.status, got, x.want)
		}
	}
}
