package vllmapi

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"
)

const plainChat = `{"model":"m","messages":[{"role":"user","content":"NaN and Infinity"}],"seed":9007199254740993}`

func inUTF16(s string, order binary.ByteOrder) []byte {
	b := make([]byte, 2)
	order.PutUint16(b, 0xfeff)
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, 0, 0)
		order.PutUint16(b[len(b)-2:], u)
	}
	return b
}

// FC-15: what Python's parser takes.
func TestFC15BodiesThatPythonReads(t *testing.T) {
	for name, body := range map[string][]byte{
		"plain":           []byte(plainChat),
		"byte order mark": []byte("\xef\xbb\xbf" + plainChat),
		"UTF-16LE":        inUTF16(plainChat, binary.LittleEndian),
		"UTF-16BE":        inUTF16(plainChat, binary.BigEndian),
		"NaN":             []byte(strings.Replace(plainChat, `"seed"`, `"unknown":[NaN,-Infinity,{"x":Infinity}],"seed"`, 1)),
		"last name wins":  []byte(strings.Replace(plainChat, `{"model"`, `{"seed":"x","Model":1,"model"`, 1)),
	} {
		g, err := readBody(body, chatAPI)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if g.seed != 9007199254740993 || g.model != "m" || !strings.Contains(detokenize(g.prompts[0]), "NaN and Infinity") {
			t.Errorf("%s: read as %+v", name, g)
		}
	}
}

// readBody reads a body as a server with a context of 1000 tokens does.
func readBody(body []byte, a *api) (*generation, *apiError) { return readBodyOf(body, a, 1000) }

func readBodyOf(body []byte, a *api, maxModelLen int) (*generation, *apiError) {
	s := &Server{c: Config{MaxModelLen: maxModelLen}}
	f := parseForm(body)
	if err := f.problem(nil); err != nil {
		return nil, err
	}
	g := a.read(s, f, nil)
	if err := f.problem(a.order); err != nil {
		return nil, err
	}
	return g, g.late
}

func TestBodiesThatAreRefused(t *testing.T) {
	const rest = `,"messages":[{"role":"user","content":"secret"}]}`
	for _, c := range []struct {
		body, kind, param, message string
	}{
		{``, "Bad Request", "body", "Field required"},
		{`{`, "Bad Request", "body.1", "json_invalid"},
		{`{"a":1} // secret`, "Bad Request", "body.8", "json_invalid"},
		{plainChat + plainChat, "Bad Request", "body.95", "json_invalid"},
		{"{\"a\":\"\xff\"}", "", "", "parsing the body"},
		{"\xff\xfea", "", "", "parsing the body"},
		{`null`, "Bad Request", "body", "Field required"},
		{`[]`, "Bad Request", "body", "valid dictionary"},
		{`"secret"`, "Bad Request", "body", "valid dictionary"},
		{`{"model":"m"}`, "Bad Request", "body.messages", "Field required"},
		{`{"model":1` + rest, "Bad Request", "body.model", "Input should be"},
		{`{"messages":{}}`, "Bad Request", "body.messages", "valid list"},
		{`{"messages":"secret"}`, "Bad Request", "body.messages", "valid list"},
		{`{"messages":[]}`, "BadRequestError", "", "empty conversation"},
		{`{"messages":[null]}`, "Bad Request", "body.messages.0.ChatCompletionDeveloperMessageParam", "8 validation errors"},
		{`{"messages":[{}]}`, "Bad Request", "body.messages.0.ChatCompletionDeveloperMessageParam.content", "15 validation errors"},
		{`{"messages":[{"role":"user","content":5}]}`, "Bad Request", "body.messages.0.ChatCompletionDeveloperMessageParam.content", "22 validation errors"},
		{`{"messages":[{"role":"user","content":[1]}]}`, "Bad Request", "body.messages.0.content.0", "Input should be"},
		{`{"messages":[{"role":"user","content":[{"text":"secret"}]}]}`, "Bad Request", "body.messages.0.content.0.type", "Field required"},
		{`{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, "Bad Request", "body.messages.0.content.0.text", "Field required"},
		{`{"messages":[{"role":"user","content":[{"type":"smell","x":"secret"}]}]}`, "BadRequestError", "type", "Unsupported chat content part type: 'smell'"},
		{`{"messages":[{"role":"assistant","tool_calls":[7]}]}`, "Bad Request", "body.0.ChatCompletionMessageFunctionToolCallParam", "2 validation errors"},
		{`{"temperature":NaN` + rest, "BadRequestError", "temperature", "finite"},
		{`{"top_p":Infinity` + rest, "BadRequestError", "top_p", "got inf"},
		{`{"temperature":-0.1` + rest, "BadRequestError", "temperature", "non-negative"},
		{`{"temperature":"hot"` + rest, "Bad Request", "body.temperature", "Input should be"},
		{`{"temperature":0,"n":2` + rest, "BadRequestError", "", "greedy"},
		{`{"top_p":0` + rest, "BadRequestError", "top_p", "(0, 1]"},
		{`{"top_p":1.01` + rest, "BadRequestError", "top_p", "(0, 1]"},
		{`{"top_k":-2` + rest, "BadRequestError", "", "-2"},
		{`{"min_p":1.5` + rest, "BadRequestError", "", "[0, 1]"},
		{`{"repetition_penalty":0` + rest, "BadRequestError", "", "greater than zero"},
		{`{"presence_penalty":2.5` + rest, "BadRequestError", "", "[-2, 2]"},
		{`{"frequency_penalty":-3` + rest, "BadRequestError", "", "[-2, 2]"},
		{`{"n":0` + rest, "BadRequestError", "", "at least 1"},
		{`{"n":129` + rest, "BadRequestError", "", "at most 128"},
		{`{"n":1.5` + rest, "Bad Request", "body.n", "Input should be"},
		{`{"max_tokens":0` + rest, "BadRequestError", "max_tokens", "at least 1"},
		{`{"max_completion_tokens":-1` + rest, "BadRequestError", "max_tokens", "at least 1"},
		{`{"max_tokens":4,"min_tokens":5` + rest, "BadRequestError", "", "max_tokens=4"},
		{`{"min_tokens":-1` + rest, "BadRequestError", "", "-1"},
		{`{"seed":1e30` + rest, "Bad Request", "body.seed", "Input should be"},
		{`{"stream":"maybe"` + rest, "Bad Request", "body.stream", "boolean"},
		{`{"stream_options":{"include_usage":true}` + rest, "BadRequestError", "stream_options", "stream=True"},
		{`{"stream":true,"stream_options":5` + rest, "Bad Request", "body.stream_options", "Input should be"},
		{`{"stop":""` + rest, "BadRequestError", "", "empty string"},
		{`{"stop":[1]` + rest, "Bad Request", "body.stop", "2 validation errors"},
		{`{"stop":["` + strings.Repeat("x", 1025) + `"]` + rest, "BadRequestError", "stop", "1024"},
		{`{"cache_salt":""` + rest, "BadRequestError", "cache_salt", "non-empty"},
		{`{"truncate_prompt_tokens":1001` + rest, "BadRequestError", "truncate_prompt_tokens", "1000"},
		{`{"continue_final_message":true` + rest, "BadRequestError", "", "not compatible"},
	} {
		g, err := readBody([]byte(c.body), chatAPI)
		if err == nil {
			t.Errorf("readBody(%.80s) = %+v", c.body, g)
			continue
		}
		if err.status != 400 || err.kind != c.kind || err.param != c.param || !strings.Contains(err.message, c.message) {
			t.Errorf("readBody(%.80s) is refused with %+v, want %s %q %q", c.body, *err, c.kind, c.param, c.message)
		}
	}
}

// FC-01: every form of a completions prompt, and those that make no sense.
func TestFC01PromptsOfCompletions(t *testing.T) {
	for _, c := range []struct {
		prompt  string
		lengths []int // of the prompts; nil: refused
	}{
		{`"12345678"`, []int{3}},
		{`["1234","12345678"]`, []int{2, 3}},
		{`[1,2,3]`, []int{3}},
		{`[[1,2,3],[4,5]]`, []int{3, 2}},
		{`[128000,6102512872456192]`, []int{2}},
		{`[""]`, []int{1}}, {`[[]]`, []int{0}},
		{`[]`, nil}, {`""`, nil}, {`null`, nil}, {`{}`, nil}, {`5`, nil},
		{`[1.5]`, nil}, {`[-1]`, nil}, {`[18446744073709551616]`, nil}, {`[128256]`, nil}, {`[true]`, nil},
		{`["a",1]`, nil}, {`[1,"a"]`, nil}, {`[[1],2]`, nil}, {`[["a"]]`, nil}, {`[null]`, nil},
	} {
		g, err := readBody([]byte(`{"prompt":`+c.prompt+`}`), textAPI)
		if c.lengths == nil {
			if err == nil || err.status != 400 {
				t.Errorf("prompt %s: %+v, %v; want status 400", c.prompt, g, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("prompt %s: %v", c.prompt, err)
			continue
		}
		if g.maxTokens != 16 {
			t.Errorf("prompt %s: at most %d tokens, want 16", c.prompt, g.maxTokens)
		}
		for i, p := range g.prompts {
			if len(g.prompts) != len(c.lengths) || len(p) != c.lengths[i] {
				t.Errorf("prompt %s: prompt %d of %d has %d tokens, want %v", c.prompt, i, len(g.prompts), len(p), c.lengths)
			}
		}
	}
}

func TestTruncationKeepsThePromptsEnd(t *testing.T) {
	g, err := readBody([]byte(`{"prompt":[1,2,3,4,5],"truncate_prompt_tokens":2}`), textAPI)
	if err != nil || len(g.prompts[0]) != 2 || g.prompts[0][0] != 4 {
		t.Errorf("prompts are %v, %v", g.prompts, err)
	}
}

func FuzzReadGeneration(f *testing.F) {
	for _, seed := range []string{
		plainChat, "\xef\xbb\xbf" + plainChat, string(inUTF16(plainChat, binary.LittleEndian)),
		`{"prompt":[[1,2],[3]],"n":3,"stop":["a","b"],"max_tokens":5,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":["a","b"],"echo":true,"stop_token_ids":[128009],"min_tokens":3,"ignore_eos":true}`,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}},{"type":"text","text":"t"}]}],"tools":[{"a":[1,{"b":null}]}]}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"id":"i","function":{"name":"f","arguments":{"a":"b"}}}]}]}`,
		`{"temperature":NaN,"messages":[]}`, `{"messages":[null]}`, `{"prompt":[[]]}`, `[`, ``, strings.Repeat(`[`, 20000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, a := range []*api{chatAPI, textAPI, messagesAPI, responsesAPI} {
			g, err := readBodyOf(body, a, 4096)
			if err != nil {
				if err.status != 400 || err.message == "" {
					t.Errorf("refused with %+v", *err)
				}
				continue
			}
			if len(g.prompts) == 0 || g.n < 1 || g.n*len(g.prompts) > maxSequences {
				t.Errorf("%d prompts, n %d", len(g.prompts), g.n)
			}
			for i, p := range g.prompts {
				if len(p) > 8*len(body)+64+mediaTokens*len(body)/8 {
					t.Errorf("prompt of %d tokens from %d bytes", len(p), len(body))
				}
				bound, err := g.fit(i, 4096)
				if err == nil && (len(p) == 0 || bound < 1 || bound+len(p) > 4096) {
					t.Errorf("prompt of %d tokens may have a reply of %d", len(p), bound)
				}
			}
		}
	})
}

// canonical against encoding/json: same meaning, and a fixed point.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"z": 1, "a": [true, null, {"b": "\u00e9\n\""}], "e":{}, "l":[] }`, `"x"`, `[[],[1,2],{}]`, `1e5`, `{"":{"":""}}`, `"\u0001 \ud83d\ude00 <&>\u2028"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		got := canonical(raw)
		var a, b any
		if err := json.Unmarshal(raw, &a); err != nil {
			return // numbers beyond float64
		}
		if err := json.Unmarshal([]byte(got), &b); err != nil {
			t.Fatalf("canonical(%s) = %s: %v", raw, got, err)
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if string(x) != string(y) {
			t.Errorf("canonical(%s) = %s", raw, got)
		}
		if again := canonical([]byte(got)); again != got {
			t.Errorf("canonical(%s) = %s", got, again)
		}
	})
}
