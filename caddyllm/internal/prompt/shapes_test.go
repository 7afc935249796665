package prompt

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// shape is one form of request. HEAD and TAIL stand for texts of 1,000 bytes:
// what is changed between them must leave HEAD's blocks alone, and none behind.
type shape struct {
	name   string
	kind   Kind
	body   string
	front  []string // old and new text, by turns: what shows before HEAD
	behind []string // what shows between HEAD and TAIL
	none   []string // what the engine doesn't render
}

var shapes = []shape{
	{
		name: "chat", kind: Chat,
		body: `{"model":"m","cache_salt":"salt","max_tokens":100,"tool_choice":"auto","response_format":{"type":"text"},"n":1,"stream":false,"temperature":0.5,"stop":["x"],"reasoning_effort":"low","chat_template":"tpl","add_special_tokens":false,
			"documents":[{"title":"d1","text":"doc"}],"chat_template_kwargs":{"enable_thinking":true,"lang":"en"},"mm_processor_kwargs":{"num_crops":4},
			"tools":[{"type":"function","function":{"name":"weather","description":"tells","strict":true,"parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}}}],
			"messages":[{"role":"system","content":"HEAD"},{"role":"user","name":"bob","content":[{"type":"text","text":"look","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"http://x/1.png","detail":"low"}},{"type":"input_audio","input_audio":{"data":"QUJD","format":"wav"}},{"type":"video_url","video_url":{"url":"http://x/v"}},{"type":"file","file":{"file_data":"RklMRQ==","filename":"f"}}]},
			{"role":"assistant","content":null,"reasoning_content":"hmm","tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\": \"Rome\"}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"sunny"},{"role":"assistant","refusal":"no"},{"role":"user","content":"TAIL"}]}`,
		front: []string{`"model":"m"`, `"model":"n"`, `"salt"`, `"pepper"`, `"low","chat`, `"high","chat`, `"tpl"`, `"tpl2"`, `"add_special_tokens":false`, `"add_special_tokens":true`,
			`"doc"`, `"docs"`, `"enable_thinking":true`, `"enable_thinking":false`, `"lang":"en"`, `"lang":"de"`, `"num_crops":4`, `"num_crops":5`,
			`"name":"weather","description"`, `"name":"whether","description"`, `"tells"`, `"shows"`, `"strict":true`, `"strict":false`, `"integer"`, `"number"`, `"required":["city"]`, `"required":["city","days"]`,
			`"properties":{"city":{"type":"string"},"days":{"type":"integer"}}`, `"properties":{"days":{"type":"integer"},"city":{"type":"string"}}`, `"role":"system"`, `"role":"developer"`},
		behind: []string{`"bob"`, `"eve"`, `"look"`, `"looks"`, `1.png"`, `2.png"`, `"QUJD"`, `"QUJE"`, `http://x/v`, `http://x/w`, `"RklMRQ=="`, `"RklMRg=="`, `"hmm"`, `"aha"`, `"id":"c1"`, `"id":"c2"`,
			`"name":"weather","arguments"`, `"name":"other","arguments"`, `Rome`, `Oslo`, `"tool_call_id":"c1"`, `"tool_call_id":"c9"`, `"sunny"`, `"rainy"`, `"role":"tool"`, `"role":"function"`, `"refusal":"no"`, `"refusal":"nope"`,
			`"content":null,`, `"content":"x",`},
		none: []string{`"max_tokens":100`, `"max_tokens":7`, `"tool_choice":"auto"`, `"tool_choice":"none"`, `"tool_choice":"auto"`, `"tool_choice":{"type":"function","function":{"name":"weather"}}`,
			`"type":"text"}`, `"type":"json_object"}`, `"n":1`, `"n":3`, `"stream":false`, `"stream":true`, `0.5`, `1.5`, `["x"]`, `["y"]`, `"detail":"low"`, `"detail":"high"`, `"ephemeral"`, `"other"`, `"content":null,`, ``,
			`"enable_thinking":true,"lang":"en"`, `"lang":"en","enable_thinking":true`, `"type":"function","function":{"name":"weather","d`, `"x_unknown":1,"type":"function","function":{"name":"weather","d`},
	},
	{
		name: "batch of chats", kind: Chat,
		body:   `{"model":"m","temperature":0,"messages":[[{"role":"system","content":"HEAD"},{"role":"user","content":"one"},{"role":"user","content":"TAIL"}],[{"role":"user","content":"other"}]]}`,
		front:  []string{`"role":"system"`, `"role":"user"`},
		behind: []string{`"one"`, `"two"`},
		none:   []string{`"other"`, `"OTHER"`, `"temperature":0`, `"temperature":1`},
	},
	{
		name: "completions", kind: Completions,
		body:   `{"model":"m","prompt":"HEADmiddleTAIL","max_tokens":5,"echo":false,"logprobs":1,"seed":1}`,
		front:  []string{`"model":"m"`, `"model":"n"`, `"echo"`, `"add_special_tokens":false,"echo"`},
		behind: []string{`middle`, `MIDDLE`},
		none:   []string{`"max_tokens":5`, `"max_tokens":6`, `"echo":false`, `"echo":true`, `"logprobs":1`, `"logprobs":2`, `"seed":1`, `"seed":2`},
	},
	{
		name: "completions of token ids", kind: Completions,
		body:   `{"prompt":[[IDS,7,8,9,IDS],[1,2]],"top_p":1}`,
		behind: []string{`7,8,9`, `7,3,9`},
		none:   []string{`"top_p":1`, `"top_p":0.5`, `[1,2]`, `[3,2]`},
	},
	{
		name: "responses", kind: Responses,
		body: `{"model":"m","instructions":"HEAD","max_output_tokens":9,"store":false,"reasoning":{"effort":"low","summary":"auto"},"tools":[{"type":"function","name":"f","parameters":{"a":1}},{"type":"web_search","size":"low","user_location":{"city":"Rome"}},{"type":"code_interpreter","container":"cntr_1"},{"type":"file_search","vector_store_ids":["vs_1"],"max_num_results":5}],
			"input":[{"type":"message","id":"msg_1","status":"completed","role":"user","content":[{"type":"input_text","text":"ask"},{"type":"input_image","image_url":"http://x/1","detail":"auto"}]},
			{"type":"reasoning","summary":[{"type":"summary_text","text":"thus"}],"encrypted_content":"ENC"},{"type":"function_call","call_id":"k1","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"k1","output":"42"},{"type":"web_search_call","id":"ws_1","action":{"query":"q"}},{"role":"user","content":"TAIL"}]}`,
		front:  []string{`"effort":"low"`, `"effort":"high"`, `"a":1`, `"a":2`, `"size":"low"`, `"size":"high"`, `"code_interpreter"`, `"local_shell"`, `"max_num_results":5`, `"max_num_results":6`, `"name":"f","parameters"`, `"name":"g","parameters"`},
		behind: []string{`"ask"`, `"asks"`, `http://x/1`, `http://x/2`, `"thus"`, `"so"`, `"ENC"`, `"END"`, `"name":"f","arguments"`, `"name":"g","arguments"`, `"{}"`, `"{ }"`, `"42"`, `"43"`, `"query":"q"`, `"query":"r"`, `"call_id":"k1","output"`, `"call_id":"k2","output"`},
		none:   []string{`"Rome"`, `"Oslo"`, `"cntr_1"`, `{"type":"auto"}`, `"vs_1"`, `"vs_2"`, `"vector_store_ids":["vs_1"],`, ``, `"max_output_tokens":9`, `"max_output_tokens":8`, `"store":false`, `"store":true`, `"id":"msg_1"`, `"id":"msg_2"`, `"completed"`, `"incomplete"`, `"detail":"auto"`, `"detail":"low"`, `"effort":"low","summary":"auto"`, `"summary":"auto","effort":"low"`},
	},
	{
		name: "messages", kind: Messages,
		body: `{"model":"m","max_tokens":9,"metadata":{"user_id":"u"},"system":[{"type":"text","text":"HEAD","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"ls","description":"lists","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],
			"messages":[{"role":"user","content":[{"type":"text","text":"q"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"tool_use","id":"t1","name":"ls","input":{"dir":"a","all":true}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"files"},{"type":"search_result","title":"found","source":"http://s/1","content":[{"type":"text","text":"page"}],"cache_control":{"type":"ephemeral"}}]}]},{"role":"user","content":"TAIL"}]}`,
		front:  []string{`"name":"ls","description"`, `"name":"la","description"`, `"lists"`, `"shows"`, `"input_schema":{"type":"object"}`, `"input_schema":{"type":"array"}`},
		behind: []string{`"q"`, `"r"`, `"AAAA"`, `"AAAB"`, `"hm"`, `"mh"`, `"id":"t1"`, `"id":"t2"`, `"name":"ls","input"`, `"name":"rm","input"`, `"dir":"a"`, `"dir":"b"`, `"dir":"a","all":true`, `"all":true,"dir":"a"`, `"files"`, `"file"`, `"found"`, `"lost"`, `http://s/1`, `http://s/2`, `"page"`, `"leaf"`, `"tool_use_id":"t1"`, `"tool_use_id":"t3"`},
		none:   []string{`,"cache_control":{"type":"ephemeral"}}]}]},{"role":"user","content":"TAIL"`, `}]}]},{"role":"user","content":"TAIL"`, `"max_tokens":9`, `"max_tokens":8`, `"user_id":"u"`, `"user_id":"v"`, `"sig"`, `"gis"`, `"media_type":"image/png"`, `"media_type":"image/gif"`},
	},
	{
		name: "messages with an effort", kind: Messages,
		body:  `{"model":"m","output_config":{"effort":"low","format":{"type":"json_schema","schema":{"a":1}}},"thinking":{"type":"enabled","budget_tokens":1024},"system":"HEAD","messages":[{"role":"user","content":"TAIL"}]}`,
		front: []string{`"effort":"low"`, `"effort":"high"`, `"effort":"low",`, ``, `"enabled"`, `"disabled"`, `"type":"enabled",`, ``},
		none:  []string{`,"budget_tokens":1024`, ``, `"type":"enabled","budget_tokens":1024`, `"budget_tokens":1024,"type":"enabled"`, `{"a":1}`, `{"b":1}`, `1024`, `2048`, `"effort":"low","format":{"type":"json_schema","schema":{"a":1}}`, `"format":null,"effort":"low"`},
	},
	{
		name: "messages with tools of Anthropic's own", kind: Messages,
		body: `{"model":"m","tools":[{"type":"computer_20250124","name":"computer","display_width_px":1024},{"type":"web_search_20250305","name":"web_search","allowed_domains":["a.org"],"cache_control":{"type":"ephemeral"}},
			{"name":"ls","input_schema":{"type":"object"}}],"system":"HEAD","messages":[{"role":"user","content":"TAIL"}]}`,
		front: []string{`1024`, `2048`, `["a.org"]`, `["b.org"]`, `"name":"web_search"`, `"name":"search"`, `"computer_20250124"`, `"computer_20251124"`},
		none:  []string{`"ephemeral"`, `"other"`, `,"cache_control":{"type":"ephemeral"}`, ``, `{"name":"ls"`, `{"type":null,"name":"ls"`},
	},
	{
		name: "Cohere's chat", kind: Chat,
		body: `{"model":"m","safety_mode":"STRICT","citation_options":{"mode":"fast"},"strict_tools":true,"thinking":{"type":"enabled","token_budget":100},"k":1,"p":0.5,
			"documents":[{"id":"d1","data":{"text":"doc"}}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"messages":[{"role":"system","content":"HEAD"},{"role":"user","content":"ask"},
			{"role":"assistant","tool_plan":"first f","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"c1","content":[{"type":"document","document":{"id":"t1","data":"found"}}]},
			{"role":"assistant","content":[{"type":"text","text":"says"}],"citations":[{"start":0,"end":4,"text":"says","sources":[{"type":"tool","id":"t1"}]}]},{"role":"user","content":"TAIL"}]}`,
		front: []string{`"STRICT"`, `"CONTEXTUAL"`, `"fast"`, `"accurate"`, `"strict_tools":true`, `"strict_tools":false`, `"enabled"`, `"disabled"`, `"thinking":{"type":"enabled","token_budget":100},`, ``, `"doc"`, `"docs"`},
		behind: []string{`"first f"`, `"first g"`, `"tool_plan":"first f",`, ``, `"found"`, `"lost"`, `"start":0`, `"start":1`, `"tool","id":"t1"`, `"tool","id":"t2"`,
			`,"citations":[{"start":0,"end":4,"text":"says","sources":[{"type":"tool","id":"t1"}]}]`, ``},
		none: []string{`"token_budget":100`, `"token_budget":200`, `"k":1`, `"k":2`, `"p":0.5`, `"p":0.6`},
	},
	{
		name: "responses with namespaces", kind: Responses,
		body: `{"model":"m","instructions":"HEAD","tools":[{"type":"namespace","name":"crm","description":"customers","tools":[{"type":"function","name":"find","parameters":{"a":1}},{"type":"custom","name":"sql","format":{"type":"grammar","definition":"start: x"}},
			{"type":"namespace","name":"inner","tools":[{"type":"function","name":"deep"}]}]},{"type":"function","name":"plain"}],
			"input":[{"type":"tool_search_output","call_id":"s1","tools":[{"type":"namespace","name":"erp","tools":[{"type":"function","name":"book","parameters":{"c":1}}]}]},
			{"type":"function_call","call_id":"k1","name":"find","namespace":"crm","arguments":"{}"},{"type":"mcp_call","id":"m1","server_label":"docs","name":"read","arguments":"{}","output":"page"},{"role":"user","content":"TAIL"}]}`,
		front: []string{`"name":"crm"`, `"name":"CRM"`, `"customers"`, `"people"`, `"name":"find","parameters"`, `"name":"seek","parameters"`, `"a":1`, `"a":2`, `"name":"sql"`, `"name":"SQL"`, `start: x`, `start: y`, `"grammar"`, `"regex"`,
			`"name":"inner"`, `"name":"outer"`, `"name":"deep"`, `"name":"flat"`, `,{"type":"function","name":"plain"}`, ``},
		behind: []string{`"name":"erp"`, `"name":"ERP"`, `"name":"book"`, `"name":"look"`, `"c":1`, `"c":2`, `"namespace":"crm"`, `"namespace":"erp"`, `,"namespace":"crm"`, ``, `"docs"`, `"code"`, `"page"`, `"leaf"`},
		none:   []string{`{"type":"namespace","name":"crm"`, `{"x_unknown":1,"type":"namespace","name":"crm"`, `{"type":"function","name":"plain"}`, `{"name":"plain","type":"function","x_unknown":1}`},
	},
	{
		name: "TGI's chat", kind: Chat,
		body:  `{"model":"tgi","tool_prompt":"Call one.","guideline":"no harm","messages":[{"role":"user","content":"HEADTAIL"}]}`,
		front: []string{`Call one`, `Call two`, `"no harm"`, `"no help"`, `"guideline":"no harm",`, ``},
	},
	{
		name: "LMDeploy's chat", kind: Chat,
		body:  `{"model":"m","enable_thinking":true,"messages":[{"role":"user","content":"HEADTAIL"}]}`,
		front: []string{`true`, `false`},
	},
	{
		name: "SGLang's reasoning", kind: Chat,
		body:  `{"model":"m","reasoning_effort":"low","reasoning":{"enabled":true,"reasoning_effort":"high","summary":"auto"},"messages":[{"role":"user","content":"HEADTAIL"}]}`,
		front: []string{`"low"`, `"medium"`, `"high"`, `"low"`, `true`, `false`, `"enabled":true,`, ``},
		none:  []string{`"auto"`, `"detailed"`, `,"summary":"auto"`, ``},
	},
	{
		name: "responses that bring their turns before along", kind: Responses,
		body: `{"model":"m","reasoning":{"effort":null,"summary":"auto"},"tools":[{"type":"mcp","server_label":"docs","headers":{"X-Key":"k1"},"authorization":"t1","allowed_tools":["a"]}],"instructions":"HEAD",
			"previous_input_messages":[{"author":{"role":"user"},"content":[{"type":"text","text":"before"}]}],"input":"TAIL"}`,
		front:  []string{`"docs"`, `"code"`, `["a"]`, `["b"]`, `"effort":null`, `"effort":"low"`},
		behind: []string{`"before"`, `"behind"`, `{"role":"user"},`, `{"role":"assistant"},`},
		none:   []string{`"k1"`, `"k2"`, `"t1"`, `"t2"`, `"headers":{"X-Key":"k1"},`, ``, `"summary":"auto"`, `"summary":"detailed"`, `,"summary":"auto"`, ``},
	},
	{
		name: "SGLang's chat", kind: Chat,
		body:  `{"model":"m","extra_key":"e","lora_path":"l","rid":"r","messages":[{"role":"user","content":"HEADmiddleTAIL"}]}`,
		front: []string{`"e"`, `"f"`, `"e"`, `null`, `"e"`, `["e"]`, `"l"`, `"k"`, `"extra_key":"e","lora_path":"l"`, `"extra_key":"l","lora_path":"e"`},
		none:  []string{`"rid":"r"`, `"rid":"s"`, `"extra_key":"e","lora_path":"l"`, `"lora_path":"l","extra_key":"e"`},
	},
	{
		name: "Ollama's chat", kind: Chat,
		body: `{"model":"m","think":"low","options":{"num_predict":5,"temperature":0},"keep_alive":"5m","messages":[{"role":"system","content":"HEAD"},{"role":"user","content":"look","images":["AAAA"]},
			{"role":"assistant","content":"","thinking":"hm","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},{"role":"tool","tool_name":"f","content":"42"},{"role":"user","content":"TAIL"}]}`,
		front:  []string{`"think":"low"`, `"think":"high"`, `"think":"low",`, ``},
		behind: []string{`"look"`, `"see"`, `"AAAA"`, `"AAAB"`, `"images":["AAAA"]`, `"images":["AAAA","BBBB"]`, `,"images":["AAAA"]`, ``, `"hm"`, `"aha"`, `{"a":1}`, `{"a":2}`, `"tool_name":"f"`, `"tool_name":"g"`},
		none:   []string{`"num_predict":5`, `"num_predict":6`, `"5m"`, `"6m"`},
	},
	{
		name: "Ollama's generate", kind: Generate,
		body:   `{"model":"m","system":"HEAD","template":"t","context":[1,2,3],"images":["AAAA"],"prompt":"middleTAIL","options":{"seed":1}}`,
		front:  []string{`"template":"t"`, `"template":"u"`},
		behind: []string{`[1,2,3]`, `[1,2,4]`, `"AAAA"`, `"AAAB"`, `middle`, `MIDDLE`},
		none:   []string{`"seed":1`, `"seed":2`},
	},
	{
		name: "Cohere's inputs of text and pictures", kind: Embeddings,
		body:   `{"model":"m","inputs":[{"content":[{"type":"text","text":"HEAD"},{"type":"image_url","image_url":{"url":"http://x/1"}},{"type":"text","text":"TAIL"}]}],"output_dimension":9}`,
		behind: []string{`http://x/1`, `http://x/2`},
		none:   []string{`"output_dimension":9`, `"output_dimension":8`},
	},
	{
		name: "embeddings", kind: Embeddings,
		body:   `{"model":"m","input":["HEADmiddleTAIL","second"],"encoding_format":"float","dimensions":256}`,
		behind: []string{`middle`, `MIDDLE`},
		none:   []string{`"float"`, `"base64"`, `256`, `128`},
	},
	{
		name: "Cohere's embeddings", kind: Embeddings,
		body:   `{"model":"m","texts":["HEADmiddleTAIL"],"images":["data:x"],"input_type":"query"}`,
		front:  []string{`"data:x"`, `"data:y"`},
		behind: []string{`middle`, `MIDDLE`},
	},
	{
		name: "rerank", kind: Rerank,
		body:   `{"model":"m","query":"HEADmiddle","documents":["TAIL","d2"],"top_n":1}`,
		behind: []string{`middle`, `MIDDLE`},
		none:   []string{`"top_n":1`, `"top_n":2`},
	},
	{
		name: "score", kind: Score,
		body:   `{"model":"m","text_1":"HEADmiddle","text_2":["TAIL"],"use_activation":true}`,
		behind: []string{`middle`, `MIDDLE`},
		none:   []string{`true`, `false`},
	},
	{
		name: "classify", kind: Classify,
		body:   `{"model":"m","input":"HEADmiddleTAIL","use_activation":true}`,
		behind: []string{`middle`, `MIDDLE`},
		none:   []string{`true`, `false`},
	},
	{
		name: "tokenize", kind: Tokenize,
		body:   `{"model":"m","prompt":"HEADmiddleTAIL","return_token_strs":true,"add_special_tokens":true}`,
		front:  []string{`"add_special_tokens":true`, `"add_special_tokens":false`},
		behind: []string{`middle`, `MIDDLE`},
		none:   []string{`"return_token_strs":true`, `"return_token_strs":false`},
	},
	{
		name: "vLLM's generate", kind: Generate,
		body:   `{"model":"m","token_ids":[IDS,7,8,9,IDS],"features":{"mm_hashes":{"image":["h1"]}},"sampling_params":{"max_tokens":5,"temperature":1},"request_id":"r"}`,
		front:  []string{`"h1"`, `"h2"`},
		behind: []string{`7,8,9`, `7,3,9`},
		none:   []string{`"max_tokens":5`, `"max_tokens":6`, `"temperature":1`, `"temperature":0`, `"request_id":"r"`, `"request_id":"s"`},
	},
	{
		name: "SGLang's generate", kind: Generate,
		body:   `{"text":"HEADmiddleTAIL","image_data":["http://x/1"],"audio_data":["http://x/3"],"video_data":"http://x/4","sampling_params":{"max_new_tokens":5,"n":2},"stream":true}`,
		front:  []string{`http://x/1`, `http://x/2`, `http://x/3`, `http://x/2`, `http://x/4`, `http://x/2`, `"audio_data"`, `"no_data"`, `"audio_data":["http://x/3"],"video_data":"http://x/4"`, `"video_data":["http://x/3"],"audio_data":"http://x/4"`},
		behind: []string{`middle`, `MIDDLE`},
		none:   []string{`"max_new_tokens":5`, `"max_new_tokens":6`, `"stream":true`, `"stream":false`},
	},
	{
		name: "TGI's generate", kind: Generate,
		body:   `{"inputs":"HEADmiddleTAIL","parameters":{"max_new_tokens":5}}`,
		behind: []string{`middle`, `MIDDLE`},
		none:   []string{`"max_new_tokens":5`, `"max_new_tokens":6`},
	},
	{
		name: "invocations of a chat", kind: Invocations,
		body:   `{"messages":[{"role":"user","content":"HEADmiddleTAIL"}],"top_k":1}`,
		front:  []string{`"role":"user"`, `"role":"system"`},
		behind: []string{`middle`, `MIDDLE`},
		none:   []string{`"top_k":1`, `"top_k":2`},
	},
}

// filled is the shape's body with its long texts.
func (x *shape) filled(change ...string) string {
	body := x.body
	if len(change) == 2 {
		if body = strings.Replace(body, change[0], change[1], 1); body == x.body {
			panic("the change " + change[0] + " is none")
		}
	}
	var ids strings.Builder
	for i := range 250 {
		fmt.Fprintf(&ids, "%d,", 1000+i)
	}
	return strings.NewReplacer("HEAD", words(2, 1000), "TAIL", words(3, 1000), "IDS", strings.TrimSuffix(ids.String(), ",")).Replace(body)
}

func TestChangingWhatIsRenderedChangesTheChainFromThereOnAndNothingBefore(t *testing.T) {
	const text = 1000 / block // blocks of HEAD, and of TAIL
	for i := range shapes {
		x := &shapes[i]
		base := scanned(t, x.kind, x.filled())
		check := func(change []string, what string, good func(n, of int, p *keyed) bool) {
			t.Helper()
			for pair := range slices.Chunk(change, 2) {
				p := scanned(t, x.kind, x.filled(pair...))
				if n := shared(base.Chain, p.Chain); !good(n, len(p.Chain), &p) {
					t.Errorf("%s, %s for %s: %d of %d blocks shared, whole key equal %v; want %s", x.name, pair[1], pair[0], n, len(p.Chain), p.whole == base.whole, what)
				}
			}
		}
		check(x.front, "none of HEAD", func(n, of int, p *keyed) bool { return n <= of-text && n <= 6 && p.whole != base.whole })
		check(x.behind, "those before the change", func(n, of int, p *keyed) bool { return n >= text-1 && n <= of-text+1 && p.whole != base.whole })
		check(x.none, "all", func(n, of int, p *keyed) bool { return n == of && p.whole == base.whole })
	}
}

// verbatim are the keys of objects that templates print in their own order.
var verbatim = []string{"parameters", "input_schema", "arguments", "documents", "document", "citations", "properties"}

// dress writes a JSON value again: other white space, other escapes, members in
// another order where that is free, and before each some have another value
// that the later one overrides.
func dress(b *strings.Builder, r *rand.Rand, n *node, fixed bool) {
	space := func() { b.WriteString([]string{"", "", " ", "\n\t", "\r\n  "}[r.IntN(5)]) }
	switch n.kind {
	case '"':
		dressText(b, r, n.text)
	case '[':
		b.WriteByte('[')
		for i, m := range n.members {
			if i > 0 {
				b.WriteByte(',')
			}
			space()
			dress(b, r, m, fixed)
			space()
		}
		b.WriteByte(']')
	case '{':
		// What an engine's own tool is told, or tells, is fed as it stands.
		fixed = fixed || slices.ContainsFunc(n.keys, func(key string) bool {
			return slices.Contains([]string{"size", "action", "allowed_tools", "author", "format", "document", "display_width_px", "allowed_domains", "title", "container", "max_num_results"}, key)
		})
		order := r.Perm(len(n.keys))
		if fixed {
			slices.Sort(order)
		}
		b.WriteByte('{')
		for i, at := range order {
			if i > 0 {
				b.WriteByte(',')
			}
			space()
			if r.IntN(8) == 0 {
				dressText(b, r, n.keys[at])
				b.WriteString([]string{`:"overridden",`, `:[{}], `, `:null,`}[r.IntN(3)])
			}
			dressText(b, r, n.keys[at])
			space()
			b.WriteByte(':')
			space()
			m := n.members[at]
			// The input of a use of a tool is printed, that of a response is read.
			inner := fixed || slices.Contains(verbatim, n.keys[at]) || n.keys[at] == "input" && m.is('{')
			dress(b, r, m, inner)
			space()
		}
		b.WriteByte('}')
	default:
		b.WriteString(n.raw)
	}
}

func dressText(b *strings.Builder, r *rand.Rand, text string) {
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '/' && r.IntN(2) == 0:
			b.WriteString(`\/`)
		case r.IntN(30) == 0 && c < 0x10000:
			fmt.Fprintf(b, []string{`\u%04x`, `\u%04X`}[r.IntN(2)], c)
		default:
			quoted := strconv.Quote(string(c))
			if c == '\'' || c >= 0x80 {
				quoted = `"` + string(c) + `"`
			}
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	b.WriteByte('"')
}

func TestEachShapeHasOneKeyInAnyDress(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for i := range shapes {
		x := &shapes[i]
		body := x.filled()
		root, ok := tree([]byte(body))
		if !ok {
			t.Fatalf("%s is no JSON", x.name)
		}
		for range 50 {
			var b strings.Builder
			if r.IntN(4) == 0 {
				b.WriteString("\xef\xbb\xbf")
			}
			dress(&b, r, root, false)
			wantSame(t, x.kind, body, b.String())
		}
	}
}
