package prompt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const block = 64

// The same prompt in other JSON clothes: keys in other orders, pretty-printed,
// escaped otherwise, with other sampling parameters.
func TestFC23DressOfTheJSONAndSamplingParametersChangeNothing(t *testing.T) {
	long := words(1, 500)
	plain := `{"model":"m","tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"system","content":"é/😀 ` + long + `"},{"role":"user","content":"hi"}]}`
	for _, dressed := range []string{
		`{"messages":[{"content":"\u00e9\/\uD83d\ude00 ` + long + `","role":"system"},{"content":"\u0068i","role":"user"}],"tools":[{"type":"function","function":{"name":"f"}}],"model":"m"}`,
		" {\r\n\t\"model\" : \"\\u006d\" , \"m\\u0065ssages\": [ {\"role\": \"s\\u0079stem\", \"content\":\"é/😀 " + long + "\" } ,\n {\"role\":\"user\",\"content\":\"hi\"} ], \"tools\" : [ { \"type\":\"function\", \"function\":{\"name\":\"f\"}}]}\n",
		`{"temperature":0.5,"top_p":1e-1,"max_tokens":7,"n":2,"stream":true,"seed":1,"stop":["x"],"user":"u","prompt_cache_key":"k","stream_options":{"include_usage":true},"logit_bias":{"1":2},"response_format":{"messages":[]},` + plain[1:],
		`{"messages":[{"role":"user","content":"overridden"}],"model":"other",` + plain[1:],
		"\xef\xbb\xbf" + plain,
	} {
		wantSame(t, Chat, plain, dressed)
	}
}

// A long first turn, so that a change in the middle leaves blocks before it.
func TestEveryRenderedThingChangesTheChainFromThereOnAndNothingBefore(t *testing.T) {
	head := `{"role":"system","content":` + quoted(words(2, 1000)) + `},{"role":"user","name":"bob","content":"ask"},`
	tail := `,{"role":"user","content":` + quoted(words(3, 1000)) + `}]}`
	middle := `{"role":"assistant","content":"one","reasoning_content":"think","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"res"},{"type":"image_url","image_url":{"url":"http://x/1"}}]}`
	base := scanned(t, Chat, `{"messages":[`+head+middle+tail)
	for _, change := range [][2]string{
		{`"role":"assistant"`, `"role":"user"`},
		{`"one"`, `"two"`},
		{`"one"`, `null`},
		{`"think"`, `"thinks"`},
		{`"id":"c1"`, `"id":"c2"`},
		{`"name":"f"`, `"name":"g"`},
		{`\"a\":1`, `\"a\":2`},
		{`"tool_call_id":"c1"`, `"tool_call_id":"c3"`},
		{`"res"`, `"rest"`},
		{`http://x/1`, `http://x/2`},
		{`image_url`, `video_url`},
		{`},{"role":"tool"`, `},{"role":"user","content":""},{"role":"tool"`},
	} {
		changed := strings.ReplaceAll(middle, change[0], change[1])
		if changed == middle {
			t.Fatalf("the change %q is none", change)
		}
		p := scanned(t, Chat, `{"messages":[`+head+changed+tail)
		n := shared(base.Chain, p.Chain)
		if n < 1000/block || n >= len(p.Chain)-1000/block+1 {
			t.Errorf("%s for %s: %d of %d blocks shared; want the %d of the turns before, not those behind",
				change[1], change[0], n, len(p.Chain), 1000/block)
		}
	}
	for _, front := range []string{`"tools":[{"x":1}],`, `"chat_template":"t",`, `"documents":[{"text":"d"}],`, `"chat_template_kwargs":{"thinking":true},`, `"cache_salt":"s",`, `"model":"other",`} {
		p := scanned(t, Chat, `{`+front+`"messages":[`+head+middle+tail)
		if n := shared(base.Chain, p.Chain); n != 0 {
			t.Errorf("%s: %d blocks shared, want 0", front, n)
		}
	}
}

func TestABorderOfAMessageCannotBeForgedFromInsideAText(t *testing.T) {
	two := `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`
	for _, text := range []string{"aMrassistantcb", `a"M"r"assistant"cb`, `a"M"r""assistant"cb`, `a\"M\"r\"\"assistant\"cb`, "a\x00M\x00rassistant", `a"},{"role":"assistant","content":"b`, "a\u00ffM\u00ff"} {
		wantDifferent(t, Chat, two, `{"messages":[{"role":"user","content":`+quoted(text)+`}]}`)
	}
	wantDifferent(t, Chat, `{"messages":[{"role":"user","content":"ab"}]}`, `{"messages":[{"role":"user","content":"a"},{"content":"b"}]}`)
	wantDifferent(t, Chat, `{"messages":[{"role":"a","name":"b","content":"c"}]}`, `{"messages":[{"role":"ab","content":"c"}]}`)
	wantDifferent(t, Chat, `{"messages":[{"content":"c"}],"tools":[{"a":["b"]}]}`, `{"messages":[{"content":"c"}],"tools":[{"a":"b"}]}`)
}

func TestFC01TokenIDsArePrompts(t *testing.T) {
	ids := func(last int) string {
		var b strings.Builder
		for i := 1; i <= 600; i++ {
			fmt.Fprintf(&b, "%d,", i)
		}
		return fmt.Sprintf(`{"model":"m","prompt":[%s%d],"max_tokens":1}`, b.String(), last)
	}
	base := scanned(t, Completions, ids(1001))
	for k := 1002; k <= 1020; k++ {
		p := scanned(t, Completions, ids(k))
		if n := shared(base.Chain, p.Chain); n != 600*4/block {
			t.Errorf("last id %d: %d blocks shared, want %d", k, n, 600*4/block)
		}
		if p.whole == base.whole {
			t.Errorf("last id %d is not in the key", k)
		}
	}
	wantSame(t, Completions, `{"prompt":[1,2,3]}`, `{"prompt":[ 1 , 2,
		3 ]}`)
	first := scanned(t, Completions, `{"prompt":[1,2,3]}`)
	both := scanned(t, Completions, `{"prompt":[[1,2,3],[4,5,6]]}`)
	if both.whole != first.whole || both.Bytes <= first.Bytes || both.N != 2 {
		t.Errorf("batch: key %x, %d bytes, %d answers; want the first's key %x, more than %d bytes, 2", both.whole, both.Bytes, both.N, first.whole, first.Bytes)
	}
	odd := []string{`[1.5]`, `[-1]`, `[18446744073709551616]`, `[2147483648]`, `[1,"a"]`, `[1,[2]]`, `[1,null]`, `[1e3]`, `[1]`}
	seen := map[uint64]string{}
	for _, o := range odd {
		p := scanned(t, Completions, `{"prompt":`+o+`}`)
		if other, ok := seen[p.whole]; ok {
			t.Errorf("prompts %s and %s have one key", o, other)
		}
		seen[p.whole] = o
	}
	var s Scanner
	for _, none := range []string{`[]`, `[[]]`, `""`, `null`, `[""]`, `7`} {
		if _, got := s.Scan(Completions, []byte(`{"prompt":`+none+`}`), true, block); got != NoPrompt {
			t.Errorf("prompt %s: status %d, want NoPrompt", none, got)
		}
	}
}

func TestFC02OfABatchTheFirstTextIsTheKeyAndAllAreTheLength(t *testing.T) {
	a := scanned(t, Completions, `{"n":2,"prompt":[`+quoted(words(1, 4000))+`,`+quoted(words(2, 4000))+`,`+quoted(words(3, 4000))+`]}`)
	b := scanned(t, Completions, `{"prompt":`+quoted(words(1, 4000)+"tail")+`}`)
	if n := shared(a.Chain, b.Chain); n != 4000/block {
		t.Errorf("%d blocks shared, want %d", n, 4000/block)
	}
	if len(a.Chain) != 4000/block || a.Bytes < 12000 || a.Bytes > 12100 || a.N != 6 {
		t.Errorf("batch: %d blocks, %d bytes, %d answers; want %d, about 12000, 6", len(a.Chain), a.Bytes, a.N, 4000/block)
	}
}

func TestFC03ContentsAsTextAndAsPartsAgree(t *testing.T) {
	chat := func(content func(string) string) string {
		var b strings.Builder
		for i := range uint64(5) {
			fmt.Fprintf(&b, `{"role":"user","content":%s},`, content(words(i, 300)+"\n"+words(i+10, 300)))
		}
		return `{"messages":[` + strings.TrimSuffix(b.String(), ",") + `]}`
	}
	asText := chat(quoted)
	onePart := chat(func(s string) string { return `[{"type":"text","text":` + quoted(s) + `}]` })
	// As in vLLM, two parts are the whole where a line feed stood between.
	twoParts := chat(func(s string) string {
		a, b, _ := strings.Cut(s, "\n")
		return `[{"text":` + quoted(a) + `,"type":"text","cache_control":{"type":"ephemeral"}},` + quoted(b) + `]`
	})
	wantSame(t, Chat, asText, onePart)
	wantSame(t, Chat, asText, twoParts)
	elsewhere := chat(func(s string) string {
		return `[{"type":"text","text":` + quoted(s[:100]) + `},{"type":"text","text":` + quoted(s[100:]) + `}]`
	})
	wantDifferent(t, Chat, asText, elsewhere)
}

func TestFC05NullAndAbsentContentsAreOne(t *testing.T) {
	loop := `{"messages":[{"role":"developer","content":"d"},{"role":"assistant",%s"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"r"}]}`
	wantSame(t, Chat, fmt.Sprintf(loop, `"content":null,`), fmt.Sprintf(loop, ``))
}

func TestFC07SystemAsTextAndAsBlocksAgreeAndBlocksAreRead(t *testing.T) {
	sys := quoted(words(7, 6000))
	rest := `"messages":[{"role":"user","content":[{"type":"text","text":"q"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"ls","input":{"dir":"a"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"files"}]}]}],"max_tokens":9}`
	text := `{"system":` + sys + `,` + rest
	wantSame(t, Messages, text, `{`+strings.TrimSuffix(rest, "}")+`,"system":[{"type":"text","text":`+sys+`,"cache_control":{"type":"ephemeral"}}]}`)
	for _, c := range [][2]string{{`"AAAA"`, `"AAAB"`}, {`"dir":"a"`, `"dir":"b"`}, {`"files"`, `"file"`}, {`"ls"`, `"rm"`}, {`"q"`, `"r"`}} {
		wantDifferent(t, Messages, text, strings.Replace(text, c[0], c[1], 1))
	}
	if p := scanned(t, Messages, text); p.MaxTokens != 9 || p.ExtraTokens != imageTokens {
		t.Errorf("max tokens %d, extra %d; want 9, %d", p.MaxTokens, p.ExtraTokens, imageTokens)
	}
}

func TestFC08ABillingLineThatChangesIsNotInTheKey(t *testing.T) {
	line := func(v string) string {
		return "x-anthropic-billing-header: cc_version=2.1." + v + "; cc_entrypoint=cli; cch=" + v + ";"
	}
	text := words(5, 6000)
	for name, body := range map[string]func(v string) (Kind, string){
		"block": func(v string) (Kind, string) {
			return Messages, `{"system":[{"type":"text","text":"` + line(v) + `"},{"type":"text","text":` + quoted(text) + `}],"messages":[]}`
		},
		"system line": func(v string) (Kind, string) {
			return Messages, `{"system":` + quoted(line(v)+"\n"+text) + `,"messages":[]}`
		},
		"system without line feed": func(v string) (Kind, string) {
			return Messages, `{"system":` + quoted(line(v)+text) + `,"messages":[]}`
		},
		"instructions": func(v string) (Kind, string) {
			return Responses, `{"instructions":` + quoted(line(v)+"\n"+text) + `,"input":"hi"}`
		},
		"block behind another": func(v string) (Kind, string) {
			return Messages, `{"system":[{"type":"text","text":"You are a coding agent."},{"type":"text","text":"` + line(v) + `"},{"type":"text","text":` + quoted(text) + `}],"messages":[]}`
		},
		"system among the messages": func(v string) (Kind, string) {
			return Messages, `{"system":"s","messages":[{"role":"user","content":"hi"},{"role":"system","content":[{"type":"text","text":"` + line(v) + `"}]},{"role":"user","content":` + quoted(text) + `}]}`
		},
		"system of a chat": func(v string) (Kind, string) {
			return Chat, `{"messages":[{"role":"user","content":"hi"},{"role":"system","content":` + quoted(line(v)+"\n"+text) + `}]}`
		},
	} {
		kind, a := body("a1b")
		_, b := body("77f")
		t.Run(name, func(t *testing.T) { wantSame(t, kind, a, b) })
	}
	user := `{"messages":[{"role":"user","content":"a"},{"role":"user","content":"` + line("%s") + `"}]}`
	wantDifferent(t, Chat, fmt.Sprintf(user, "1", "1"), fmt.Sprintf(user, "2", "2"))
}

func TestFC10ResponsesHaveInstructionsAndItems(t *testing.T) {
	wantSame(t, Responses, `{"instructions":"be kind","input":"hi"}`, `{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"instructions":"be kind"}`)
	items := `{"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"42"}],"max_output_tokens":5}`
	for _, c := range [][2]string{{`"42"`, `"43"`}, {`"f"`, `"g"`}, {`"{}"`, `"{ }"`}} {
		wantDifferent(t, Responses, items, strings.Replace(items, c[0], c[1], 1))
	}
	wantDifferent(t, Responses, `{"input":"hi"}`, `{"input":"hi","previous_response_id":"r1"}`)
}

func TestFC15WhatPythonAcceptsIsReadAndWhatItRefusesIsBroken(t *testing.T) {
	plain := `{"messages":[{"role":"user","content":"hi"}]}`
	wantSame(t, Chat, plain, "\xef\xbb\xbf"+plain)
	wantSame(t, Chat, plain, `{"temperature":NaN,"a":Infinity,"b":-Infinity,`+plain[1:])
	wantDifferent(t, Chat, `{"messages":[{"role":"user","content":"\ud800"}]}`, `{"messages":[{"role":"user","content":"\udc00"}]}`)
	var utf16 []byte
	for _, c := range []byte(plain) {
		utf16 = append(utf16, c, 0)
	}
	var s Scanner
	for _, body := range []string{"\xff\xfe" + string(utf16), string(utf16), plain + "// comment", "/**/" + plain,
		strings.Replace(plain, ":[", ":[//\n", 1), plain + plain, "", " ", "null", "[]", `"hi"`, "{", "1", "{]", `{"a" 1}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"messages":[{"a":1}`,
		`{"messages":[1,]}`, `{"messages":[{]}]}`, `{"a":tru}`, `{"a":+1}`, `{"messages":[{"role":"user","content":"\x"}]}`, `{"messages":[{"role":"user","content":"\u12"}]}`} {
		if _, got := s.Scan(Chat, []byte(body), true, block); got != Broken {
			t.Errorf("Scan(%q) = status %d, want Broken", body, got)
		}
	}
}

func TestFC16BodiesWithoutTextHaveNoPrompt(t *testing.T) {
	var s Scanner
	for _, body := range []string{`{}`, `{"model":"m"}`, `{"messages":{}}`, `{"messages":[]}`, `{"messages":[null,1,"x",{}]}`, `{"messages":"text"}`, `{"messages":[{"role":"user","content":""}]}`} {
		if p, got := s.Scan(Chat, []byte(body), true, block); got != NoPrompt || p.Chain != nil {
			t.Errorf("Scan(%s) = status %d with %d blocks, want NoPrompt with none", body, got, len(p.Chain))
		}
	}
	if _, got := s.Scan(None, []byte(`{"messages":[{"content":"a"}]}`), true, block); got != NoPrompt {
		t.Errorf("Scan(None) = status %d, want NoPrompt", got)
	}
}

// Whatever the head of a long body shows must be the start of what the whole
// body shows, or heads would never match.
func TestFC19AHeadOfABodyHasTheFirstBlocksOfTheWhole(t *testing.T) {
	body := `{"model":"m","tools":[{"n":` + quoted(words(1, 200)) + `}],"messages":[{"role":"system","content":` + quoted(words(2, 900)+"\n\"é\"") +
		`},{"role":"user","content":[{"type":"text","text":` + quoted(words(3, 900)) + `}]}],"max_tokens":1234}`
	whole := scanned(t, Chat, body)
	var s Scanner
	last := 0
	for n := range len(body) {
		p, status := s.Scan(Chat, []byte(body[:n]), false, block)
		if status == Broken {
			t.Fatalf("the head of %d bytes is broken: %q", n, body[max(0, n-40):n])
		}
		if status != OK {
			continue
		}
		if got := shared(p.Chain, whole.Chain); got != len(p.Chain) {
			t.Fatalf("the head of %d bytes: %d of its %d blocks are the body's", n, got, len(p.Chain))
		}
		if len(p.Chain) < last {
			t.Fatalf("the head of %d bytes has %d blocks, fewer than a shorter one", n, len(p.Chain))
		}
		if p.MaxTokens != 0 && p.MaxTokens != 1234 {
			t.Fatalf("the head of %d bytes has max_tokens %d, a number that was cut", n, p.MaxTokens)
		}
		last = len(p.Chain)
		if _, status := s.Scan(Chat, []byte(body[:n]), true, block); status != Broken {
			t.Fatalf("%d of %d bytes as a whole body: status %d, want Broken", n, len(body), status)
		}
	}
	if last != len(whole.Chain) {
		t.Errorf("the longest head has %d blocks, want %d", last, len(whole.Chain))
	}
}

func TestFC26TextOfManyByteCharactersMatchesUpToTheChange(t *testing.T) {
	for offset := range 4 {
		text := []rune(strings.Repeat("x", offset) + strings.Repeat("漢字😀", 2000))
		base := scanned(t, Completions, `{"prompt":`+quoted(string(text))+`}`)
		text[len(text)-1] = '😁'
		if n := shared(base.Chain, scanned(t, Completions, `{"prompt":`+quoted(string(text))+`}`).Chain); n < len(base.Chain)-1 {
			t.Errorf("offset %d, last character changed: %d of %d blocks shared", offset, n, len(base.Chain))
		}
		text[10] = '字' + 1
		if n := shared(base.Chain, scanned(t, Completions, `{"prompt":`+quoted(string(text))+`}`).Chain); n != 0 {
			t.Errorf("offset %d, character 10 changed: %d blocks shared, want 0", offset, n)
		}
	}
}

func TestFC28DeepJSONIsGivenUp(t *testing.T) {
	var s Scanner
	for _, n := range []int{900, 3000, 9999, 10001, 2_000_000} {
		want := Broken
		if n < maxDepth {
			want = OK
		}
		deep := strings.Repeat("[", n) + strings.Repeat("]", n)
		for _, body := range []string{
			`{"messages":[{"role":"user","content":"a"}],"x":` + deep + `}`,
			`{"messages":[{"role":"user","content":"a"}],"tools":` + deep + `}`,
			`{"messages":[{"role":"user","content":"a"},{"role":"user","content":` + deep + `}]}`,
			`{"messages":[{"role":"user","content":"a","x":` + strings.Repeat(`{"a":`, n) + `1` + strings.Repeat(`}`, n) + `}]}`,
		} {
			if _, got := s.Scan(Chat, []byte(body), true, block); got != want {
				t.Errorf("Scan(%.60s…, depth %d) = status %d, want %d", body, n, got, want)
			}
		}
	}
}

func TestFC31OnlyATruePrefixMatches(t *testing.T) {
	prompt := func(parts ...string) []uint64 {
		return scanned(t, Completions, `{"prompt":`+quoted(strings.Join(parts, ""))+`}`).Chain
	}
	x, y := words(1, 1600), words(2, 1600)
	if n := shared(prompt(x), prompt(x, words(200, 640))); n != 1600/block {
		t.Errorf("X and X+…: %d blocks shared, want %d", n, 1600/block)
	}
	known := map[uint64]bool{}
	for _, h := range append(prompt(x), prompt(y)...) {
		known[h] = true
	}
	for _, other := range [][]uint64{prompt(y, x)[1600/block+1:], prompt(words(3, 16), x), prompt(words(3, 64), x)} {
		for i, h := range other {
			if known[h] {
				t.Errorf("block %d of a text that X doesn't start matches", i)
			}
		}
	}
}

func TestFC106ASaltSeparatesTenants(t *testing.T) {
	messages := `"messages":[{"role":"user","content":` + quoted(words(1, 10_000)) + `}]`
	none := scanned(t, Chat, `{`+messages+`}`)
	a := scanned(t, Chat, `{"cache_salt":"a",`+messages+`}`)
	b := scanned(t, Chat, `{`+messages+`,"cache_salt":"b"}`)
	again := scanned(t, Chat, `{`+messages+`,"cache_salt":"\u0061"}`)
	if shared(a.Chain, b.Chain)+shared(a.Chain, none.Chain)+shared(b.Chain, none.Chain) != 0 {
		t.Error("other salts share blocks")
	}
	if !slices.Equal(a.Chain, again.Chain) {
		t.Error("one salt, spelled twice, doesn't share its blocks")
	}
	for _, odd := range []string{`""`, `7`, `null`} {
		if p := scanned(t, Chat, `{"cache_salt":`+odd+`,`+messages+`}`); p.whole != none.whole {
			t.Errorf("salt %s counts as one", odd)
		}
	}
}

func TestModelIsPartOfTheKeyWhereverItStands(t *testing.T) {
	m := `"messages":[{"role":"user","content":` + quoted(words(1, 1000)) + `}]`
	wantSame(t, Chat, `{"model":"a/b",`+m+`}`, `{`+m+`,"model":"a\/b"}`)
	if n := shared(scanned(t, Chat, `{"model":"a",`+m+`}`).Chain, scanned(t, Chat, `{"model":"lora",`+m+`}`).Chain); n != 0 {
		t.Errorf("two models share %d blocks, want 0", n)
	}
	if p := scanned(t, Chat, `{"model":"a\/b",`+m+`}`); string(p.ModelName) != "a/b" || p.Model == 0 {
		t.Errorf("model %q (%x), want a/b", p.ModelName, p.Model)
	}
}

func TestParametersOfTheAnswerAreRead(t *testing.T) {
	body := `{"messages":[{"content":"a"}],"max_tokens":%s,"n":%s,"stream":true}`
	for _, x := range []struct {
		max, n    string
		wantMax   int
		wantCount int
	}{{"12", "3", 12, 3}, {"null", "null", 0, 1}, {"-1", "0", 0, 1}, {"1.5", `"2"`, 0, 1}, {"99999999999999999999", "2147483647", 0, 1<<31 - 1}} {
		p := scanned(t, Chat, fmt.Sprintf(body, x.max, x.n))
		if p.MaxTokens != x.wantMax || p.N != x.wantCount || !p.Stream {
			t.Errorf("max_tokens %s, n %s: got %d, %d, stream %v; want %d, %d, true", x.max, x.n, p.MaxTokens, p.N, p.Stream, x.wantMax, x.wantCount)
		}
	}
	if p := scanned(t, Chat, `{"messages":[{"content":"a"}],"max_tokens":5,"max_completion_tokens":6}`); p.MaxTokens != 6 || p.Stream {
		t.Errorf("got %d, %v; want 6, false", p.MaxTokens, p.Stream)
	}
}

func TestOtherKindsHavePromptsToo(t *testing.T) {
	for _, x := range []struct {
		kind Kind
		a, b string
	}{
		{Embeddings, `{"input":"a"}`, `{"input":"b"}`},
		{Embeddings, `{"input":["a","c"]}`, `{"input":["b","c"]}`},
		{Embeddings, `{"messages":[{"role":"user","content":"a"}]}`, `{"messages":[{"role":"user","content":"b"}]}`},
		{Rerank, `{"query":"a","documents":["x"]}`, `{"query":"b","documents":["x"]}`},
		{Rerank, `{"query":"a","documents":["x"]}`, `{"query":"a","documents":[{"text":"x"}]}`},
		{Score, `{"text_1":"a","text_2":["x","y"]}`, `{"text_1":"a","text_2":["z","y"]}`},
		{Classify, `{"input":"a"}`, `{"input":"b"}`},
		{Tokenize, `{"prompt":"a"}`, `{"prompt":"b"}`},
		{Tokenize, `{"messages":[{"content":"a"}]}`, `{"messages":[{"content":"b"}]}`},
		{Generate, `{"text":"a"}`, `{"text":"b"}`},
		{Generate, `{"input_ids":[1]}`, `{"input_ids":[2]}`},
		{Generate, `{"inputs":"a"}`, `{"inputs":"b"}`},
	} {
		wantDifferent(t, x.kind, x.a, x.b)
		wantSame(t, x.kind, x.a, " "+x.a+" ")
	}
}
