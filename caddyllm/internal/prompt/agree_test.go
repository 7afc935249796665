package prompt

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prefix"
)

// expect is what Scan should say of a body, by way of the twin.
func expect(kind Kind, root *node, block int) (keyed, Status) {
	f := fieldsOf(root, topField)
	var w twin
	if kind == Root {
		f[fPrompt] = nil
		for i, key := range root.keys {
			if key == "inputs" {
				f[fPrompt] = root.members[i]
			}
		}
	}
	w.prompt(kind, f)
	if !w.found {
		return keyed{}, NoPrompt
	}
	whole := func(n *node) int {
		if n == nil {
			return 0
		}
		text, fraction, ok := strings.Cut(n.raw, ".")
		if ok && strings.Trim(fraction, "0") != "" {
			text = n.raw
		}
		i, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return 0
		}
		return int(i)
	}
	number := func(from field) int {
		n := whole(f[from])
		if v := f[fSampling]; n == 0 && v.is('{') {
			for i, key := range v.keys {
				if topField([]byte(key)) == from && v.members[i].says() {
					n = whole(v.members[i])
				}
			}
		}
		return n
	}
	p := Prompt{Bytes: w.out.Len() + w.others, ExtraTokens: w.extra, Kind: w.kind}
	p.Unread, p.Unkept, p.Background = w.rare(root, f[fSampling])
	for from, to := range map[field]*uint64{fSession: &p.Session, fPrevious: &p.Previous} {
		if n := f[from]; n.is('"') && n.text != "" {
			*to = xxhash.Sum64String(shortestForm(n.text))
		}
	}
	for _, m := range []field{fMaxNewTokens, fMaxTokens, fMaxOutputTokens, fMaxCompletionTokens} {
		if n := number(m); n > 0 {
			p.MaxTokens = n
		}
	}
	p.N = min(max(1, number(fN))*w.prompts, math.MaxInt32)
	p.Stream = f[fStream] != nil && f[fStream].raw == "true"
	p.Whole = f[fStream] != nil && f[fStream].raw == "false"
	seed := uint64(0)
	if m := f[fModel]; m.is('"') && m.text != "" {
		p.ModelName, p.Model = []byte(m.text), xxhash.Sum64String(m.text)
		seed = p.Model
	}
	if salt := f[fCacheSalt]; salt.is('"') && salt.text != "" {
		seed = seed*0x9e3779b97f4a7c15 ^ xxhash.Sum64String(shortestForm(salt.text))
	}
	for _, from := range []field{fExtraKey, fAdapter} {
		n := f[from]
		if v := f[fSampling]; !n.says() && v.is('{') {
			for i, key := range v.keys {
				if topField([]byte(key)) == from && v.members[i].says() {
					n = v.members[i]
				}
			}
		}
		if n.says() {
			var alone twin
			alone.value(n)
			seed = (seed+uint64(from))*0x9e3779b97f4a7c15 ^ xxhash.Sum64(alone.out.Bytes())
		}
	}
	var c prefix.Chain
	c.Reset(nil, block)
	c.Write(w.out.Bytes())
	p.Chain = slices.Clone(c.Seal(seed))
	return keyed{p, wholeOf(&c, seed)}, OK
}

// rare is the scanner's, from a tree.
func (w *twin) rare(root, sampling *node) (unread, unkept, background bool) {
	f := fieldsOf(root, rareFieldOf)
	reads := func(n *node, raw string) bool { return n != nil && n.raw == raw }
	background = w.kind == Responses && reads(f[rBackground], "true")
	if sampling.is('{') {
		for of, n := range fieldsOf(sampling, rareFieldOf) {
			if own := f[of]; of > rEverywhere && !own.says() && n.says() {
				f[of] = n
			}
		}
	}
	switch {
	case f[rSkipReading].says():
		unread = reads(f[rSkipReading], "true")
	case f[rPromptLogprobs].says():
		unread = true
	case reads(f[rEcho], "true"):
		unread = w.kind == Chat || f[rLogprobs].says()
	case reads(f[rReturnLogprob], "true") && reads(f[rLogprobStart], "0") || reads(f[rCachePrompt], "false"):
		unread = true
	default:
		unkept = reads(f[rInputDetails], "true")
		unread = unkept
	}
	return unread, unkept, background
}

// likeness reports whether both read the body's text the same way:
// encoding/json replaces invalid UTF-8 and lone surrogates, which Python
// refuses and keeps; the scanner gives up nesting earlier; and the twin knows
// nothing of the billing line.
func likeness(body []byte, n *node, depth int) bool {
	if depth == 0 && !utf8.Valid(body) || depth >= maxDepth {
		return false
	}
	for _, text := range append([]string{n.text}, n.keys...) {
		if strings.ContainsRune(text, utf8.RuneError) || strings.HasPrefix(text, string(billing)) {
			return false
		}
	}
	for _, m := range n.members {
		if !likeness(body, m, depth+1) {
			return false
		}
	}
	return true
}

func samePrompt(a, b keyed) bool {
	if len(a.Chain) != len(b.Chain) || shared(a.Chain, b.Chain) != len(a.Chain) || !bytes.Equal(a.ModelName, b.ModelName) {
		return false
	}
	return a.whole == b.whole && a.Bytes == b.Bytes && a.ExtraTokens == b.ExtraTokens && a.Model == b.Model && a.MaxTokens == b.MaxTokens &&
		a.Kind == b.Kind && a.Session == b.Session && a.Previous == b.Previous &&
		a.N == b.N && a.Stream == b.Stream && a.Whole == b.Whole && a.Unread == b.Unread && a.Unkept == b.Unkept && a.Background == b.Background
}

// compare checks one body against the twin, and its heads against each other.
func compare(t *testing.T, s *Scanner, kind Kind, body []byte) {
	p, status := s.Scan(kind, body, true, block)
	var got keyed
	if status == OK {
		got = keyedBy(s, p)
	}
	root, ok := tree(body)
	if ok && likeness(body, root, 0) {
		if root.kind != '{' {
			if status != Broken {
				t.Fatalf("Scan(%v, %q) = status %d, want Broken", kind, body, status)
			}
		} else if want, wantStatus := expect(kind, root, block); status != wantStatus || !samePrompt(got, want) {
			t.Fatalf("Scan(%v, %q) = %+v, status %d; the twin has %+v, status %d", kind, body, got, status, want, wantStatus)
		}
	}
	portably(func() {
		var fresh Scanner
		var again keyed
		p, without := fresh.Scan(kind, body, true, block)
		if without == OK {
			again = keyedBy(&fresh, p)
		}
		if without != status || !samePrompt(again, got) {
			t.Fatalf("Scan(%v, %q) = %+v, status %d, in a used scanner; %+v, status %d, in a fresh one without vectors", kind, body, got, status, again, without)
		}
	})
	// A head is read where it stands last; of a body that is wrong in a value
	// overridden later only the head shows it.
	head := body[:len(body)*2/3]
	if _, headStatus := s.Scan(kind, head, false, block); ok && headStatus == Broken && status != Broken {
		t.Fatalf("Scan(%v, %q) is broken, a head of a good body", kind, head)
	}
}

var seeds = []string{
	`{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
	`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"data:image\/png;base64,AAAA","detail":"low"}}]}],"cache_salt":"s","stream":true,"stream_options":{"include_usage":true}}`,
	`{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"number","maximum":1.5e3}}}}}],"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]},{"role":"tool","tool_call_id":"c","content":"\u00e9\ud83d\ude00\n"}],"n":3}`,
	`{"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r"},{"type":"image","source":{"type":"base64","data":"AA"}}]}]},{"role":"assistant","content":[{"type":"thinking","thinking":"h"},{"type":"tool_use","id":"t","name":"n","input":{"a":[1,true,null]}}]}]}`,
	`{"instructions":"i","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"o"},{"type":"reasoning","summary":[{"text":"s"}]}],"reasoning":{"effort":"low"},"previous_response_id":"r"}`,
	`{"prompt":["a","b","c"],"max_tokens":5}`, `{"prompt":[[1,2],[3]]}`, `{"prompt":[1, 2 ,3,-1,1.5,2147483648,{"a" : 1}]}`, `{"input":"x","query":"q","documents":["d",{"text":"e"}],"text":"t"}`,
	`{"messages":[null,1,"x",{}],"messages":[{"content":{"a":[]}}]}`, `{"a":[[[{}]]],"messages":"x"}`, `[]`, `nul`, `{"messages":[{"content":"\ud800x"}]}`, "\xef\xbb\xbf{}", `{"messages":[{"content":NaN}]}`,
	`{"tools":[{"function":{"parameters":{"a":1,"b":{"x":1,"x":2},"a":3,"\u0061":4},"name":"f","x":1},"type":"function"},{"type":"web_search"},7],"chat_template_kwargs":{"b":[1],"a":{"c":1},"b":2},"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"k":1,"k":2}}]},{"type":"item_reference","id":"m"}]}`,
	`{"messages":[[{"role":"user","content":"a"}],[{"role":"user","content":"b"}],"x"],"session_id":"s"}`,
	`{"text":"t","image_data":["iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB",{"url":"x"}],"sampling_params":{"max_new_tokens":9,"n":2},"input_ids":[1]}`,
	`{"prompt_embeds":"AAAA","add_special_tokens":false}`, `{"token_ids":[1,2],"features":{"mm_hashes":{"image":["h"]}},"sampling_params":{"max_tokens":3}}`,
	`{"texts":["a","b"],"images":["data:image/png;base64,AA"]}`,
	`{"reasoning":{"effort":"low"},"output_config":{"effort":null},"extra_key":["e"],"lora_path":"l","previous_input_messages":[{"a":1}],"tools":[{"type":"mcp","headers":{},"a":1}],"input":[{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"x"}}]}`,
	`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"http:\/\/a\/b?id=1&X-Amz-Signature=5&se=6"}},{"image":"https://x?sig=1"}]}]}`,
	`{"system":"s","context":[1],"template":"t","prompt":{"content":[{"type":"image_url","uuid":"u"}]},"options":{"num_predict":5.0},"messages":[{"images":["AA"],"content":[{"type":"prompt_embeds","prompt_embeds":"AA"}]}]}`,
	`{"tools":[{"type":"mcp","cache_control":{"type":"ephemeral"},"a":1}],"messages":[{"reasoning":"r","reasoning_content":null,"content":[{"type":"tool_result","tool_use_id":"t","cache_control":{}},{"type":"redacted_thinking","data":"d","cache_control":{}},{"type":"image_url","text":"","image_url":{"url":"u","file_id":""}}]}]}`,
	`{"input_extra":[],"chat_template_kwargs":{},"input_prefix":"p","prompt":"q","text_input":"","lora":[{"id":1}],"parameters":{"adapter_id":"a","max_new_tokens":3}}`,
	`{"messages":[{"role":"user","content":[{"content":[{"content":[{"content":[{"content":[{"content":"deep"}]}]}]}]}]}]}`,
	`{"messages":[{"role":"user","content":[{"type":"tool_result","text":"","content":[ ],"id":"t"},{"type":"image","text":"a","source":{"url":"","data":"AA"}},{"type":"x","text":"","thinking":"","input":{},"name":"f"},{"type":"text","text":"","image":{"url":"","x":[]},"image_url":{"data":""}}]}]}`,
	`{"inputs":"a","text":"b","parameters":{"adapter_id":"c"},"inputs":"d"}`,
	`{"documents":[{"text":"","content":[],"image":"AA"}],"query":"q"}`,
	`{"prompt":"a","echo":true,"logprobs":0,"prompt_logprobs":null,"cache_prompt":false}`, `{"messages":[{"content":"a"}],"echo":true,"prompt_logprobs":0}`,
	`{"text":"a","return_logprob":true,"logprob_start_len":0,"sampling_params":{"skip_reading_prefix_cache":false,"prompt_logprobs":1}}`,
	`{"inputs":"a","parameters":{"decoder_input_details":true}}`, `{"input":"a","background":true}`,
	`{"tools":[{"type":"namespace","name":"a","tools":[{"type":"namespace","name":"b","tools":[{"type":"namespace","name":"c","tools":[{"type":"namespace","name":"d","tools":[{"type":"namespace","name":"e","tools":[{"name":"f","x":1}]}]}]}]}]},{"type":"custom","name":"g","cache_control":1,"format":{}},{"type":"","name":"h","tools":7}],"input":[{"type":"tool_search_output","tools":[{"type":"namespace","name":"a","tools":[]}]},{"type":"function_call","name":"f","namespace":"n","arguments":""},{"type":"mcp_call","server_label":"s","name":"f"}]}`,
	`{"safety_mode":"OFF","citation_options":{"mode":"off"},"strict_tools":true,"thinking":{"type":"enabled","token_budget":1},"tool_prompt":"p","guideline":"g","enable_thinking":false,"messages":[{"role":"assistant","tool_plan":"p","citations":[{"start":0}],"tool_calls":[{"function":{"name":"f","namespace":"n"}}]}]}`,
	`{"messages":[{"content":[{"type":"search_result","title":"t","source":"s","content":[{"text":"a"}],"cache_control":1},{"type":"search_result","content":""},{"content":[{"content":[{"content":[{"content":[{"type":"search_result","content":"a"}]}]}]}]}]}]}`,
	`{"text":"t","image_data":"i","audio_data":["a",null],"video_data":[{"url":"v"}]}`,
}

func FuzzScanAgreesWithItsTwin(f *testing.F) {
	for _, seed := range seeds {
		for kind := None; kind <= Root; kind++ {
			f.Add(byte(kind), []byte(seed))
		}
	}
	var s Scanner
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		compare(t, &s, Kind(kind%byte(Root+1)), body)
	})
}
