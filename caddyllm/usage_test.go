package caddyllm

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

func TestUsageOfAnswers(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		want         *route.Usage
	}{
		{
			"chat", `{"id":"x","choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":90,"total_tokens":95,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":64}}}`,
			&route.Usage{PromptTokens: 90, CompletionTokens: 5, CachedTokens: 64, CachedKnown: true},
		},
		{
			"not reported", `{"choices":[],"usage":{"prompt_tokens":90,"completion_tokens":5,"prompt_tokens_details":null},"kv_transfer_params":null}`,
			&route.Usage{PromptTokens: 90, CompletionTokens: 5},
		},
		{
			"stream", "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":0}}}\n\ndata: [DONE]\n\n",
			&route.Usage{PromptTokens: 9, CompletionTokens: 2, CachedKnown: true},
		},
		{
			"continuous usage, the last counts", "data: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
			&route.Usage{PromptTokens: 9, CompletionTokens: 2},
		},
		{
			"null in the last chunk", "data: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: {\"usage\":null}\n\n",
			&route.Usage{PromptTokens: 9, CompletionTokens: 1},
		},
		{
			"responses", `{"output":[],"usage":{"input_tokens":40,"input_tokens_details":{"cached_tokens":32},"output_tokens":7,"total_tokens":47}}`,
			&route.Usage{PromptTokens: 40, CompletionTokens: 7, CachedTokens: 32, CachedKnown: true, Form: route.FormResponse},
		},
		{
			"a response that ran tools", `{"usage":{"input_tokens":9100,"input_tokens_details":{"cached_tokens":6000,"input_tokens_per_turn":[3000,3050,3050],"cached_tokens_per_turn":[16,2992,2992]},"output_tokens":60,"output_tokens_details":{"reasoning_tokens":9,"output_tokens_per_turn":[20,20,20]}}}`,
			&route.Usage{PromptTokens: 3000, CompletionTokens: 60, CachedTokens: 16, CachedKnown: true, Form: route.FormResponse},
		},
		{
			"a response that ran tools, and doesn't tell what was cached when", `{"usage":{"input_tokens":6050,"input_tokens_details":{"cached_tokens":6000,"input_tokens_per_turn":[3000,3050]},"output_tokens":60}}`,
			nil,
		},
		{
			"a response of one turn", `{"usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":64,"input_tokens_per_turn":[90],"cached_tokens_per_turn":[64]},"output_tokens":6}}`,
			&route.Usage{PromptTokens: 90, CompletionTokens: 6, CachedTokens: 64, CachedKnown: true, Form: route.FormResponse},
		},
		{ // as vLLM 0.32 answers: input_tokens are those that the cache neither had nor has now
			"messages", `{"type":"message","usage":{"input_tokens":2,"output_tokens":3,"cache_creation_input_tokens":64,"cache_read_input_tokens":128}}`,
			&route.Usage{PromptTokens: 194, CompletionTokens: 3, CachedTokens: 128, CachedKnown: true, Form: route.FormMessage},
		},
		{
			"messages, streamed", "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":14,\"output_tokens\":0}}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":14,\"output_tokens\":3,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0}}\n\n",
			&route.Usage{PromptTokens: 14, CompletionTokens: 3, CachedKnown: true, Form: route.FormMessage},
		},
		{
			"SGLang's generate", `{"text":"hi","output_ids":[1,2],"meta_info":{"id":"x","finish_reason":{"type":"length","length":5},"prompt_tokens":90,"completion_tokens":5,"cached_tokens":64,"e2e_latency":0.5}}`,
			&route.Usage{PromptTokens: 90, CompletionTokens: 5, CachedTokens: 64, CachedKnown: true},
		},
		{"negative in messages", `{"usage":{"input_tokens":9,"output_tokens":1,"cache_read_input_tokens":-1}}`, nil},
		{"text that speaks of usage", `{"choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":1}"}}]}`, nil},
		{"stream without", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", nil},
		{"cut off", `{"usage":{"prompt_tok`, nil},
		{"more cached than prompt", `{"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":10}}}`, nil},
		{"negative", `{"usage":{"prompt_tokens":-9,"completion_tokens":1}}`, nil},
		{"written with a point", `{"usage":{"prompt_tokens":90.0,"completion_tokens":1e1,"prompt_tokens_details":{"cached_tokens":64.0}}}`, &route.Usage{PromptTokens: 90, CompletionTokens: 10, CachedTokens: 64, CachedKnown: true}},
		{"a fraction of a token", `{"usage":{"prompt_tokens":9.5,"completion_tokens":1}}`, nil},
		{"more than a number holds", `{"usage":{"prompt_tokens":9,"completion_tokens":12345678901234567890}}`, nil},
		{"text for numbers", `{"usage":{"prompt_tokens":"9"}}`, nil},
		{"empty", ``, nil},
	} {
		got := parseUsage([]byte(c.answer))
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: parseUsage = %+v, want %+v", c.name, got, c.want)
		}
	}
}

// The tail holds the end of any answer, in whatever pieces it came.
func TestTailKeepsTheEnd(t *testing.T) {
	var text strings.Builder
	for i := range 60_000 {
		text.WriteByte(byte('a' + i%23))
	}
	whole := text.String()
	for _, piece := range []int{1, 7, 4095, 4096, 4097, 8192, 60_000} {
		var tl tail
		for rest := whole; rest != ""; {
			n := min(piece, len(rest))
			tl.write([]byte(rest[:n]))
			rest = rest[n:]
		}
		got := string(tl.bytes())
		if len(got) < tailBytes || !strings.HasSuffix(whole, got) {
			t.Errorf("pieces of %d: tail holds %d bytes, a suffix: %v", piece, len(got), strings.HasSuffix(whole, got))
		}
		tl.release()
		if tl.bytes() != nil {
			t.Error("a released tail still holds bytes")
		}
	}
}

// Whoever trains on answers asks for the prompt's token ids, which come behind
// the usage.
func TestUsageBeforeTheTokenIDsIsFound(t *testing.T) {
	answer := `{"id":"x","choices":[{"message":{"content":"` + strings.Repeat("words ", 5000) + `"}}],"usage":{"prompt_tokens":30000,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":64}},"prompt_token_ids":[` + strings.Repeat("12345,", 30000) + `1],"kv_transfer_params":null}`
	want := route.Usage{PromptTokens: 30000, CompletionTokens: 5, CachedTokens: 64, CachedKnown: true}
	for _, piece := range []int{1, 7, 1000, 4096, 5000, 32 << 10, len(answer)} {
		tl := tail{whole: true}
		for rest := answer; rest != ""; {
			n := min(piece, len(rest))
			tl.write([]byte(rest[:n]))
			rest = rest[n:]
		}
		if got := tl.usage(); got == nil || *got != want {
			t.Errorf("in pieces of %d: %+v, want %+v", piece, got, want)
		}
		tl.release()
	}
}

func FuzzUsage(f *testing.F) {
	f.Add([]byte(`{"usage":{"prompt_tokens":9,"completion_tokens":2}}`))
	f.Add([]byte(`"usage":"usage":null"usage":{`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		u := parseUsage(answer)
		if u != nil && (u.PromptTokens <= 0 || u.CachedTokens < 0 || u.CachedTokens > u.PromptTokens || u.CompletionTokens < 0) {
			t.Errorf("parseUsage(%q) = %+v: not numbers to learn from", answer, *u)
		}
	})
}

// Whatever an engine tells beside, and however it spaces it, the numbers are
// those that encoding/json finds.
func TestUsageAsEncodingJSONReadsIt(t *testing.T) {
	type details struct {
		Reasoning int    `json:"reasoning_tokens"`
		Cached    *int   `json:"cached_tokens,omitempty"`
		Note      string `json:"note"`
	}
	type object struct {
		Note       string   `json:"note"`
		Prompt     int      `json:"prompt_tokens"`
		List       []int    `json:"list"`
		Details    *details `json:"prompt_tokens_details"`
		Completion int      `json:"completion_tokens"`
		Other      *details `json:"completion_tokens_details"`
		Cost       any      `json:"cost"`
	}
	rng := rand.New(rand.NewPCG(1, 2))
	notes := []string{"", `a "quote"`, "back\\slash\\", "{[", "]}", "é 中"}
	// What engines tell beside is theirs: it may be of any kind.
	costs := []any{true, nil, 0.002, 1e30, json.Number("1e3"), json.Number("12345678901234567890"), -1, "9"}
	for range 2000 {
		n := func() int { return rng.IntN(1000) }
		cached := n()
		o := object{
			Note: notes[rng.IntN(len(notes))], Prompt: 1000 + n(), List: []int{n(), n()}, Completion: n(),
			Other: &details{Reasoning: n(), Cached: &cached}, Cost: costs[rng.IntN(len(costs))],
		}
		want := route.Usage{PromptTokens: o.Prompt, CompletionTokens: o.Completion}
		if rng.IntN(3) > 0 {
			c := n()
			o.Details = &details{Reasoning: n(), Cached: &c, Note: notes[rng.IntN(len(notes))]}
			want.CachedTokens, want.CachedKnown = c, true
		}
		text, err := json.Marshal(map[string]any{"usage": o})
		if err != nil {
			t.Fatal(err)
		}
		if rng.IntN(2) == 0 {
			var out bytes.Buffer
			if err := json.Indent(&out, text[len(`{"usage":`):len(text)-1], "", "\t"); err != nil {
				t.Fatal(err)
			}
			text = append([]byte(`{"usage":`), append(out.Bytes(), '}')...)
		}
		if got := parseUsage(text); got == nil || *got != want {
			t.Fatalf("parseUsage(%s) = %+v, want %+v", text, got, want)
		}
	}
}

// Reading what each answer told allocates the result and nothing else.
func TestUsageCostsOneAllocation(t *testing.T) {
	answer := []byte(`{"choices":[],"usage":{"prompt_tokens":90,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":64}}}`)
	if got := testing.AllocsPerRun(100, func() { parseUsage(answer) }); got > 1 {
		t.Errorf("parseUsage allocates %v times, want 1", got)
	}
}
