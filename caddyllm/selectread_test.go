package caddyllm

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
)

// Ollama sends pieces unless the body asks for the whole, which it may do behind
// the bytes that are read.
func TestAnOllamaBodyThatIsCutMayAskForTheWhole(t *testing.T) {
	l := newLookout(t, LLMPrefix{MaxBody: 64 << 10}, "a:1")
	for _, c := range []struct {
		path, front, back string
		words             int
		want              bool
	}{
		{"/api/chat", ``, ``, 3, true},
		{"/api/chat", ``, `,"stream":false`, 3, false},
		{"/api/chat", ``, `,"stream":false`, 20_000, false},
		{"/api/chat", `"stream":true,`, ``, 20_000, true},
		{"/api/chat", ``, ``, 20_000, false}, // as nobody can tell
		{"/generate_stream", ``, ``, 20_000, true},
	} {
		body := `{` + c.front + `"messages":[{"role":"user","content":"` + strings.Repeat("word ", c.words) + `"}]` + c.back + `}`
		r := httptest.NewRequest("POST", c.path, strings.NewReader(body))
		f := l.p.takeOff(r)
		var s prompt.Scanner
		if req, _, why := f.read(&s, r); why != "" || req.Stream != c.want {
			t.Errorf("%s, %d bytes, %q and %q: stream is %v (%q), want %v", c.path, len(body), c.front, c.back, req.Stream, why, c.want)
		}
		f.body.land()
	}
}

// A prompt whose log probabilities are asked for is computed anew anywhere: nothing
// keeps it where its session is, and what it leaves is held there. TGI leaves none.
func TestAPromptThatIsScoredIsNotKeptWithItsSession(t *testing.T) {
	l := newLookout(t, LLMPrefix{SessionHeader: "X-Session-Id"}, "a:1")
	for asks, want := range map[string]struct{ home, unread, keeps bool }{
		`"seed":1`:                 {true, false, true},
		`"prompt_logprobs":0`:      {false, true, true},
		`"echo":true,"logprobs":1`: {false, true, true},
		`"parameters":{"decoder_input_details":true}`: {false, true, false},
	} {
		r := httptest.NewRequest("POST", "/v1/completions", strings.NewReader(`{"prompt":"`+strings.Repeat("word ", 200)+`",`+asks+`}`))
		r.Header.Set("X-Session-Id", "one")
		f := l.p.takeOff(r)
		var s prompt.Scanner
		req, _, why := f.read(&s, r)
		if why != "" || (f.session != 0) != want.home || req.Unread != want.unread || (len(req.Chain) > 0) != want.keeps {
			t.Errorf("%s: session %x, unread %t, %d blocks (%q); want %+v", asks, f.session, req.Unread, len(req.Chain), why, want)
		}
		f.body.land()
	}
}

// What a site takes at its root is seldom a prompt: it goes on as it comes, unread.
func TestAnUploadToAnAddressAloneIsNotRead(t *testing.T) {
	l := newLookout(t, LLMPrefix{}, "a:1")
	for kind, want := range map[string]string{
		"":                                  whyPath,
		"application/x-www-form-urlencoded": whyPath,
		"multipart/form-data; boundary=x":   whyPath,
		"application/octet-stream":          whyPath,
		"text/plain":                        whyPath,
		"application/json":                  "",
		"Application/JSON; charset=utf-8":   "",
		"application/vnd.api+json":          "",
	} {
		for _, path := range []string{"/", ""} {
			body := new(endless)
			r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader(`{"inputs":"`), io.LimitReader(body, 1<<20), strings.NewReader(`"}`)))
			r.URL.Path = path
			r.Header.Set("Content-Type", kind)
			f := l.p.takeOff(r)
			if f.why != want || (body.read == 0) != (want == whyPath) {
				t.Errorf("%q to %q: the reason is %q, and %d bytes were read; want %q", kind, path, f.why, body.read, want)
			}
			if f.body != nil {
				f.body.land()
			}
		}
	}
}

// Triton's models share an engine's address and path but for their names.
func TestFC25AModelInThePathTellsPromptsApart(t *testing.T) {
	l := newLookout(t, LLMPrefix{}, "a:1")
	var s prompt.Scanner
	read := func(path string) (uint64, uint64) {
		r := httptest.NewRequest("POST", path, strings.NewReader(`{"text_input":"`+strings.Repeat("word ", 200)+`"}`))
		f := l.p.takeOff(r)
		defer f.body.land()
		req, _, why := f.read(&s, r)
		if why != "" || len(req.Chain) == 0 {
			t.Fatalf("%s: %d blocks (%q)", path, len(req.Chain), why)
		}
		return req.Model, req.Chain[0]
	}
	model, first := read("/v2/models/a/generate")
	if again, same := read("/v2/models/a/generate_stream"); again != model || same != first {
		t.Error("one model by two paths has two keys")
	}
	for _, path := range []string{"/v2/models/b/generate", "/generate"} { // with a scanner that has seen a model
		if other, block := read(path); other == model || block == first {
			t.Errorf("%s has the key of another model", path)
		}
	}
}
