package caddyllm

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// ask calls the admin API as Caddy's endpoint does.
func ask(t *testing.T, method, target, body string) (status int, answer string, header http.Header) {
	t.Helper()
	mux := http.NewServeMux()
	var failure error
	for _, r := range (adminAPI{}).Routes() {
		mux.HandleFunc(r.Pattern, func(w http.ResponseWriter, req *http.Request) { failure = r.Handler.ServeHTTP(w, req) })
	}
	w := httptest.NewRecorder()
	room := bodiesRoom.taken.Load()
	defer func() {
		if taken := bodiesRoom.taken.Load(); taken != room {
			t.Errorf("%s %s leaves %d bytes of bodies taken", method, target, taken-room)
		}
	}()
	mux.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	if failure != nil {
		var api caddy.APIError
		if !errors.As(failure, &api) {
			t.Fatalf("%s %s: %v is no error of the admin API", method, target, failure)
		}
		return api.HTTPStatus, api.Err.Error(), w.Header()
	}
	return w.Code, w.Body.String(), w.Header()
}

func explained(t *testing.T, target, body string) explanation {
	t.Helper()
	status, text, _ := ask(t, "POST", target, body)
	if status != http.StatusOK {
		t.Fatalf("POST %s: %d %s", target, status, text)
	}
	var e explanation
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAdminState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookout(t, LLMPrefix{State: "golden"}, "a:1", "b:1", "c:1", "d:1")
		l.story()
		status, text, header := ask(t, "GET", "/llm_prefix/state", "")
		if status != http.StatusOK || header.Get("Content-Type") != "application/json" {
			t.Fatalf("%d %s %s", status, header, text)
		}
		goldenJSON(t, "state.json", []byte(text))
	})
}

func TestExplainGolden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookout(t, LLMPrefix{State: "golden"}, "a:1", "b:1", "c:1", "d:1")
		l.story()
		_, text, _ := ask(t, "POST", "/llm_prefix/explain?state=golden", chatBody("Conversation 0.", 700))
		goldenJSON(t, "explain.json", []byte(text))
	})
}

// What explain says is what the next request meets, its terms add up, and
// asking changes nothing.
func TestExplainIsWhatTheGatewayDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookout(t, LLMPrefix{SessionHeader: "X-Session"}, "a:1", "b:1", "c:1", "d:1")
		l.story()
		for i := range 40 {
			body := chatBody([]string{"Conversation 0.", "Conversation 2.", "Conversation 1."}[i%3]+strings.Repeat("!", i/9), 100+37*i)
			before := l.p.shared.report(time.Now(), "", keptDecisions)
			e := explained(t, "/llm_prefix/explain", body)
			if after := l.p.shared.report(time.Now(), "", keptDecisions); !reflect.DeepEqual(before, after) {
				t.Fatalf("explaining changed the state from\n%+v to\n%+v", before, after)
			}
			if e.Upstreams[0].Address != e.Choice.Upstream || len(e.Upstreams) != 4 {
				t.Fatalf("%s is the choice, and %+v the ranking", e.Choice.Upstream, e.Upstreams)
			}
			for _, u := range e.Upstreams {
				if sum := u.Queue + u.Prefill + u.Stall + u.Copy + u.Memory + u.Step; math.Abs(sum-u.Cost) > 5e-6 {
					t.Errorf("the terms of %s add up to %v, not to its cost %v", u.Address, sum, u.Cost)
				}
				if e.Choice.DecidedBy == "cost" && u.Standing == "sound" && u.Cost < e.Upstreams[0].Cost {
					t.Errorf("%s costs less than the choice", u.Address)
				}
			}
			a := l.send("POST", "/v1/chat/completions", body)
			if d := l.p.shared.journal.decisions(keptDecisions)[0]; a.up != e.Choice.Upstream || d.reason != e.Choice.Reason || round(d.predicted.Seconds()) != e.Choice.FirstToken {
				t.Fatalf("request %d goes to %s for %s in %v, explained was %+v", i, a.up, d.reason, d.predicted, *e.Choice)
			}
			if i%2 == 0 {
				a.finish(100*time.Millisecond, 300*time.Millisecond, `null`)
			}
		}
	})
}

func TestExplainKeepsSessionsAndResponses(t *testing.T) {
	l := newLookout(t, LLMPrefix{}, "a:1", "b:1")
	l.p.shared.responses.put(responseInPath("/v1/responses/resp_1"), "b:1")
	e := explained(t, "/llm_prefix/explain?path=/v1/responses", `{"input":"More.","previous_response_id":"resp_1"}`)
	if e.Choice.Upstream != "b:1" || e.Choice.DecidedBy != "response" || e.Choice.Reason != string(route.ReasonSession) {
		t.Errorf("a prompt that goes on from a response of b:1 is explained as %+v", *e.Choice)
	}
	if e.Upstreams[1].Address != "a:1" || e.Upstreams[1].Standing != "lacks_response" {
		t.Errorf("the upstream without the response ranks as %+v", e.Upstreams[1])
	}
}

func TestExplainRefusals(t *testing.T) {
	newLookout(t, LLMPrefix{}, "a:1", "b:1")
	for _, c := range []struct {
		name, target, body string
		status             int
		want               string
	}{
		{"a missing comma", "", "{\n  \"model\": \"m\"\n  \"messages\": [" + canary, 400, "the body is not JSON: unexpected character at byte 20, line 3, column 3"},
		{"an end too early", "", `{"messages":[{"role":"user","content":"` + canary, 400, "the body is not JSON: unexpected end of JSON input at byte 48, line 1, column 48"},
		{"a list", "", `[]`, 400, "the body is JSON, but none that engines accept: it is no object, or nested too deep"},
		{"nothing", "", ``, 400, "the body is empty; it must be that of a request to /v1/chat/completions"},
		{"an unknown state", "?state=other", `{}`, 404, `there is no state "other", only default`},
		{"an unknown upstream", "?upstream=z:1", chatBody("Hello.", 3), 404, `there is no upstream "z:1"; GET /llm_prefix/state lists them`},
	} {
		status, text, _ := ask(t, "POST", "/llm_prefix/explain"+c.target, c.body)
		if status != c.status || text != c.want {
			t.Errorf("%s: %d %s, want %d %s", c.name, status, text, c.status, c.want)
		}
	}
	for _, c := range []struct{ target, body, want string }{
		{"?path=/v1/models", chatBody("Hello.", 3), whyPath},
		{"", `{"model":"m"}`, whyNoPrompt},
	} {
		if e := explained(t, "/llm_prefix/explain"+c.target, c.body); e.Fallback != c.want || e.Choice != nil || len(e.Upstreams) != 0 {
			t.Errorf("%s is explained as %+v, want the fallback for %s", c.body, e, c.want)
		}
	}
	if e := explained(t, "/llm_prefix/explain?upstream=b:1", chatBody("Hello.", 3)); e.Choice.Upstream != "b:1" || len(e.Upstreams) != 1 {
		t.Errorf("narrowed to b:1, the choice is %+v", *e.Choice)
	}
}

func TestAdminWithoutAState(t *testing.T) {
	if status, text, _ := ask(t, "POST", "/llm_prefix/explain", chatBody("Hello.", 3)); status != 404 ||
		text != `there is no state "default": no loaded configuration has lb_policy llm_prefix` {
		t.Errorf("%d %s", status, text)
	}
	if status, text, _ := ask(t, "GET", "/llm_prefix/state", ""); status != 200 || !strings.Contains(text, `"states":[]`) {
		t.Errorf("%d %s", status, text)
	}
	if status, _, _ := ask(t, "GET", "/llm_prefix/state?state=x", ""); status != 404 {
		t.Errorf("GET of an unknown state: %d, want 404", status)
	}
}

func TestAdminMethods(t *testing.T) {
	for path, method := range map[string]string{
		"/llm_prefix/state": "GET", "/llm_prefix/explain": "POST", "/llm_prefix/upstreams/a:1/cache": "DELETE",
	} {
		for _, other := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"} {
			if other == method {
				continue
			}
			if status, _, header := ask(t, other, path, ""); status != 405 || header.Get("Allow") != method {
				t.Errorf("%s %s: %d, Allow %q, want 405 and %s", other, path, status, header.Get("Allow"), method)
			}
		}
	}
}

// endless counts what is read of a body that never ends.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += int64(len(p))
	return len(p), nil
}

func TestExplainReadsNoMoreThanAGatewayWould(t *testing.T) {
	l := newLookout(t, LLMPrefix{MaxBody: 64 << 10}, "a:1")
	body := new(endless)
	req := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader(chatBody("Hello.", 3)[:30]), body))
	e, err := l.p.foresee(req, "/v1/chat/completions", nil)
	if err != nil || e.Fallback != whyMaxBody {
		t.Errorf("an endless body is explained as %+v, %v", e, err)
	}
	if body.read > 65<<10 {
		t.Errorf("%d bytes were read of it", body.read)
	}
}

func TestForgetACache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookout(t, LLMPrefix{}, "unix//run/a.sock", "b:1")
		l.send("POST", "/v1/chat/completions", chatBody("Hello.", 300)).finish(time.Second, time.Second, `null`)
		up := l.p.shared.journal.decisions(keptDecisions)[0].upstream
		target := "/llm_prefix/upstreams/" + strings.ReplaceAll(up, "/", "%2F") + "/cache"
		status, text, _ := ask(t, "DELETE", target, "")
		if status != 200 || strings.Contains(text, `"blocks":0`) {
			t.Errorf("DELETE %s: %d %s, want the blocks of one prompt", target, status, text)
		}
		if status, text, _ = ask(t, "DELETE", target, ""); status != 200 || !strings.Contains(text, `"blocks":0`) {
			t.Errorf("DELETE again: %d %s, want none left", status, text)
		}
		if e := explained(t, "/llm_prefix/explain", chatBody("Hello.", 300)); e.Choice.Reason != string(route.ReasonCold) {
			t.Errorf("after that the prompt goes on for %s, want cold", e.Choice.Reason)
		}
		if status, _, _ = ask(t, "DELETE", "/llm_prefix/upstreams/z:1/cache", ""); status != 404 {
			t.Errorf("DELETE of an unknown upstream's cache: %d, want 404", status)
		}
		if status, _, _ = ask(t, "DELETE", target+"?state=x", ""); status != 404 {
			t.Errorf("DELETE in an unknown state: %d, want 404", status)
		}
	})
}

// Whatever is asked about, the answer is an explanation or says what is wrong
// with the question, in words that are not the question's.
func FuzzExplain(f *testing.F) {
	f.Add("/v1/chat/completions", chatBody("Hello.", 100))
	f.Add("/v1/completions", `{"prompt":[1,2,3],"n":4}`)
	f.Add("/v1/responses", `{"input":"x","previous_response_id":"resp_1"}`)
	f.Add("/v1/messages", "\xef\xbb\xbf{\"messages\":\n[{]")
	f.Add("", `[`)
	f.Fuzz(func(t *testing.T, path, body string) {
		l := newLookout(t, LLMPrefix{State: "fuzz", MaxBody: 1 << 20}, "a:1", "b:1")
		e, err := l.p.foresee(httptest.NewRequest("POST", "/", strings.NewReader(body)), path, nil)
		var refused caddy.APIError
		switch {
		case errors.As(err, &refused):
			if refused.HTTPStatus != http.StatusBadRequest {
				t.Fatalf("%d %v", refused.HTTPStatus, refused.Err)
			}
		case err != nil:
			t.Fatal(err)
		case (e.Choice == nil) == (e.Fallback == ""):
			t.Fatalf("neither a choice nor a fallback, or both: %+v", e)
		case e.Choice != nil && e.Choice.Upstream != e.Upstreams[0].Address:
			t.Fatalf("%+v is the choice of %+v", e.Choice, e.Upstreams)
		}
	})
}
