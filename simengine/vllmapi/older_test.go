package vllmapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// The recorded versions before Version. This server answers as that does
// whatever its profile, but for what a gateway has to read otherwise:
// Config.SilentMisses.
var olderVersions = map[string]struct {
	younger   []change
	otherwise map[string]string
}{
	"0.19.1": {since019, otherwise019},
	"0.11.2": {slices.Concat(since019, since011), otherwise011},
}

// change is what answers got since a version, as it stands in shapes and
// errors: what this server says becomes what the older one said.
// docs/fidelity.md lists them.
type change struct {
	what string
	now  *regexp.Regexp
	then string
}

var since019 = []change{
	{"members of choices and answers", regexp.MustCompile(`,(?:routed_experts|prompt_text|ec_transfer_params|metrics):<nil>`), ""},
	{"completion_tokens_details", regexp.MustCompile(`,completion_tokens_details:<nil>`), ""},
	{"members of prompt_tokens_details", regexp.MustCompile(`,(?:created_cache_tokens|multimodal_tokens):(?:0|<nil>)`), ""},
	{"system_fingerprint of answers", regexp.MustCompile(`service_tier:<nil>,system_fingerprint:s`), "service_tier:<nil>,system_fingerprint:<nil>"},
	{"system_fingerprint of streams", regexp.MustCompile(`\],system_fingerprint:s\}`), "]}"},
	{"system_fingerprint behind usage", regexp.MustCompile(`\},system_fingerprint:s\}`), "}}"},
	{"no tool_calls in answers without any", regexp.MustCompile(`function_call:<nil>,reasoning`), "function_call:<nil>,tool_calls:[],reasoning"},
	{"no null usage in streams of completions", regexp.MustCompile(`(prompt_token_ids:(?:<nil>|\[0\]),token_ids:<nil>\}\])\}`), "$1,usage:<nil>}"},
	{"no null details in streams of completions", regexp.MustCompile(`(prompt_token_ids:<nil>,token_ids:<nil>\}\],usage:\{prompt_tokens:0,total_tokens:0,completion_tokens:0)\}`), "$1,prompt_tokens_details:<nil>}"},
	{"members of responses", regexp.MustCompile(`,(?:presence_penalty|frequency_penalty|cache_write_tokens):0`), ""},
	{"tool_choice of responses without tools", regexp.MustCompile(`tool_choice:none,tools:\[\]`), "tool_choice:auto,tools:[]"},
	{"no summary of messages in streams of responses", regexp.MustCompile(`(type:message,phase:<nil>)\},output_index:0(,sequence_number:0,type:response.output_item.done)`), "$1,summary:[]},output_index:0$2"},
	{"type and role in message_start", regexp.MustCompile(`message:\{id:s,type:message,role:assistant,`), "message:{id:s,"},
	{"stop_sequence in message_delta", regexp.MustCompile(`delta:\{stop_reason:s,stop_sequence:<nil>\}`), "delta:{stop_reason:s}"},
	{"models in the errors on unknown ones", regexp.MustCompile(` Valid aliases: tiny-llama\.`), ""},
}

var since011 = []change{
	{"no reasoning_content in messages", regexp.MustCompile(`reasoning:<nil>\}`), "reasoning:<nil>,reasoning_content:<nil>}"},
	{"no reasoning_content in deltas", regexp.MustCompile(`delta:\{(role:assistant,)?content:s\}`), "delta:{${1}content:s,reasoning_content:<nil>}"},
	{"param of errors", regexp.MustCompile(`"param":"\w+"`), `"param":null`},
	{"parameters in the texts of errors", regexp.MustCompile(` \(parameter=\w+(?:, value=[^)]*)?\)`), ""},
	{"incomplete responses", regexp.MustCompile(`incomplete_details:\{reason:max_output_tokens\}`), "incomplete_details:<nil>"},
	{"status of incomplete responses", regexp.MustCompile(`status:incomplete`), "status:completed"},
	{"kv_transfer_params of responses", regexp.MustCompile(`user:<nil>,kv_transfer_params:<nil>`), "user:<nil>"},
}

// Where they answer otherwise, why.
const (
	validation = "errors of validation quote the request and a line of Python"
	lengths    = "the words on lengths are others, and a reply isn't cut to the room left"
	tools      = "a call that must be made ends when it is made, and begins with its arguments"
	scaleOut   = "is there without --enable-scale-out"
	ownWords   = "likewise for 0.32.0: see unlike"
)

var otherwise019 = map[string]string{
	"chat-render": scaleOut, "completion-render": scaleOut, "generate-tokens": scaleOut,
	"chat-stream-tool-named": tools, "chat-stream-tool-required": tools, "chat-tool-named": tools,
	"completion-stop": ownWords, "completion-stop-kept": ownWords, "completion-stop-token": ownWords, "completion-stream-stop": ownWords,
	"embeddings":                    ownWords,
	"error-no-object":               "0.19.1 fails on a list with a 500",
	"error-full-context-completion": lengths, "error-too-long": lengths, "error-too-long-stream": lengths,
	"error-too-long-completion": lengths, "error-too-long-reply": lengths,
	"error-content-type": validation, "error-content-type-form": validation, "error-empty-body": validation, "error-empty-prompt": validation,
	"error-messages-no-json": validation, "error-no-json": validation, "error-no-messages": validation, "error-no-prompt": validation,
	"error-responses-no-json": validation, "error-role": validation, "error-salt-empty": validation, "error-stream-options": validation,
	"error-tool-choice-without-tools": validation, "error-top-logprobs": validation, "error-wrong-type": validation,
	"error-wrong-types": validation, "messages-without-max-tokens": validation,
}

func TestOlderAnswersDifferOnlyAsListed(t *testing.T) {
	for version, older := range olderVersions {
		t.Run(version, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(recordings, version, "exchanges", "*.txt"))
			if err != nil || len(files) < 50 {
				t.Fatalf("%d recordings: %v", len(files), err)
			}
			used := make([]bool, len(older.younger))
			synctest.Test(t, func(t *testing.T) {
				for _, file := range files {
					compareOlder(t, file, version, older.younger, used, older.otherwise)
				}
			})
			for i, y := range older.younger {
				if !used[i] {
					t.Errorf("nothing in an answer changes by %q", y.what)
				}
			}
		})
	}
}

func compareOlder(t *testing.T, file, version string, younger []change, used []bool, otherwise map[string]string) {
	name := strings.TrimSuffix(filepath.Base(file), ".txt")
	a := readAsked(t, file)
	engine := benchEngine
	engine.MaxModelLen, engine.BlockSize, engine.Blocks = 512, 32, 129
	b := newBench(t, engine, 1, func(c *Config) { c.Model, c.Version, c.SilentMisses = "tiny-llama", version, true })
	if warm.MatchString(a.answer) {
		// It found blocks of an exchange before it, so does this one.
		b.do(t.Context(), a.method, a.path, changed.Replace(a.body), a.header...)
	}
	r := b.do(t.Context(), a.method, a.path, changed.Replace(a.body), a.header...)
	got, want := form200(r.Body.String()), form200(a.answer)
	if a.status >= 400 || r.Code >= 400 {
		got, want = strings.TrimSpace(r.Body.String()), strings.TrimSpace(a.answer)
	}
	for i, y := range younger {
		if then := y.now.ReplaceAllString(got, y.then); then != got {
			got, used[i] = then, true
		}
	}
	same := r.Code == a.status && (a.method == http.MethodHead || got == want)
	switch why := otherwise[name]; {
	case why == "" && !same:
		t.Errorf("%s: status %d, want %d\n got %s\nwant %s", name, r.Code, a.status, got, want)
	case why != "" && same:
		t.Errorf("%s: is answered as recorded, though it is listed: %s", name, why)
	case (why == validation || why == lengths) && (r.Code != a.status || !isError(r.Body.String()) || !isError(a.answer)):
		t.Errorf("%s: status %d, want %d, and no errors of one form:\n got %s\nwant %s", name, r.Code, a.status, r.Body, a.answer)
	}
}

// warm tells the recorded answers that had something cached.
var warm = regexp.MustCompile(`"cached_tokens":[1-9]`)

// isError says whether a body has the form of an error.
func isError(body string) bool {
	var e struct {
		Error struct {
			Message, Type string
			Code          int
		}
	}
	return json.Unmarshal([]byte(body), &e) == nil && e.Error.Message != "" && e.Error.Type != "" && e.Error.Code >= 400
}

// otherwise011 are the same and some more, less what agrees.
var otherwise011 = func() map[string]string {
	all := maps.Clone(otherwise019)
	maps.Copy(all, map[string]string{
		"messages-count-tokens":   "is not there yet",
		"messages-stream":         "tells no usage at its beginning, and ends with [DONE] as other streams do",
		"score":                   "an error with status 200",
		"rerank":                  "an error with status 200",
		"chat-tool-required":      "the recorded model's call has no end, and it answers 400 then",
		"error-empty-list-prompt": "other words", "error-empty-messages": "other words",
	})
	return all
}()
