package prompt

import (
	"slices"
	"strings"
	"testing"
)

// Anthropic's clients put the mark of what shall be cached on the last part of a
// turn, and on the next turn take it away again.
func TestAMarkForTheCacheIsNotInTheKeyWhateverItStandsOn(t *testing.T) {
	const mark = `,"cache_control":{"type":"ephemeral","ttl":"5m"}`
	for _, body := range []string{
		`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"MARK}]},{"role":"user","content":"go on"}]}`,
		`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"MARK},{"type":"text","text":"go on"MARK}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"x"MARK}]}]}]}`,
		`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}MARK}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"AAAA"}MARK}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","data":"AAAA"}MARK}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"container_upload","id":"f"MARK,"x":[1,{"a":"b"}]}]}]}`,
		`{"tools":[{"name":"f","input_schema":{}MARK}],"messages":[{"role":"user","content":"a"}]}`,
		`{"tools":[{"type":"mcp_toolset","mcp_server_name":"s"MARK}],"messages":[{"role":"user","content":"a"}]}`,
		`{"tools":[{"type":"function","function":{"name":"f"}MARK}],"messages":[{"role":"user","content":"a"}]}`,
	} {
		wantSame(t, Messages, strings.ReplaceAll(body, "MARK", mark), strings.ReplaceAll(body, "MARK", ""))
	}
	wantDifferent(t, Messages, `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]}]}`, `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2"}]}]}`)
	wantDifferent(t, Messages, `{"messages":[{"role":"user","content":[{"type":"x","data":"1","cache_control":{}}]}]}`, `{"messages":[{"role":"user","content":[{"type":"x","data":"2","cache_control":{}}]}]}`)
}

// Clients that write all members of a structure out send two names for one
// thing, one of them null or empty. It must not hide what the other one says.
func TestANameThatSaysNothingLeavesTheKeyToAnother(t *testing.T) {
	for _, x := range []struct {
		kind Kind
		body string
	}{
		{Chat, `{"messages":[{"role":"assistant","reasoning_content":"ONE","reasoning":null,"content":"a"}]}`},
		{Chat, `{"messages":[{"role":"assistant","reasoning":"ONE","reasoning_content":"","content":"a"}]}`},
		{Chat, `{"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"ONE"},"custom":null}]}]}`},
		{Chat, `{"messages":[{"role":"tool","tool_call_id":"ONE","tool_name":null,"content":"a"}]}`},
		{Chat, `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"ONE","file_id":""}}]}]}`},
		{Responses, `{"input":[{"role":"user","content":[{"type":"input_file","file_data":"ONE","file_id":null}]}]}`},
		{Responses, `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"","file_id":"ONE"}]}]}`},
		{Generate, `{"prompt":"ONE","text":null,"inputs":""}`},
		{Generate, `{"inputs":"a","parameters":{"adapter_id":"ONE","lora":null}}`},
	} {
		wantDifferent(t, x.kind, x.body, strings.ReplaceAll(x.body, "ONE", "TWO"))
	}
	// Of one name that comes twice the last counts, whatever it says.
	wantSame(t, Chat, `{"messages":[{"role":"user","content":"a","content":null},{"role":"user","content":"b"}]}`, `{"messages":[{"role":"user"},{"role":"user","content":"b"}]}`)
	wantSame(t, Chat, `{"messages":[{"role":"assistant","reasoning_content":"x","reasoning":null,"reasoning_content":null,"content":"b"}]}`, `{"messages":[{"role":"assistant","content":"b"}]}`)
}

// Some clients give a picture the text that its structure has room for.
func TestAPictureWithATextOfItsOwnIsSeen(t *testing.T) {
	for _, text := range []string{``, `"text":"",`, `"text":null,`, `"text":"look",`} {
		for _, part := range []string{`{TEXT"type":"image_url","image_url":{"url":"http://x/1"}}`, `{"type":"input_audio",TEXT"input_audio":{"data":"http://x/1"}}`, `{"video_url":{"url":"http://x/1"},TEXT"type":"video_url"}`} {
			body := strings.ReplaceAll(`{"messages":[{"role":"user","content":[`+part+`,{"type":"text","text":"what?"}]}]}`, "TEXT", text)
			wantDifferent(t, Chat, body, strings.ReplaceAll(body, "x/1", "x/2"))
			if text != `"text":"look",` {
				wantSame(t, Chat, body, strings.ReplaceAll(body, text, ""))
			}
		}
	}
	wantSame(t, Chat, `{"messages":[{"role":"user","content":[{"type":"text","text":"a","image_url":null,"input_audio":null}]}]}`, `{"messages":[{"role":"user","content":"a"}]}`)
}

// Go's and Java's clients write all members of a part out, whatever it is.
func TestAnEmptyMemberHidesNothingOfAPart(t *testing.T) {
	for _, part := range []string{
		`{"type":"image",EMPTY,"source":{"type":"base64","media_type":"image/png","data":"ONE"}}`,
		`{"type":"input_file",EMPTY,"file_id":"ONE"}`,
		`{"type":"file",EMPTY,"file":{"file_data":"ONE","file_id":""}}`,
		`{"type":"image_url",EMPTY,"uuid":"ONE"}`,
		`{"type":"tool_use","id":"t","name":"f",EMPTY,"input":{"a":"ONE"}}`,
		`{"type":"tool_use","id":"t","name":"ONE",EMPTY,"input":{}}`,
		`{"type":"tool_result","tool_use_id":"t",EMPTY,"content":"ONE"}`,
		`{"type":"tool_result","tool_use_id":"t",EMPTY,"content":[{"type":"text","text":"ONE"}]}`,
		`{"type":"tool_result","tool_use_id":"ONE",EMPTY}`,
		`{"type":"thinking",EMPTY,"thinking":"ONE"}`,
		`{"type":"redacted_thinking",EMPTY,"data":"ONE"}`,
		`{"type":"video_url",EMPTY,"video_url":{"url":"ONE"}}`,
		`{"type":"input_audio",EMPTY,"input_audio":{"format":"wav","data":"ONE"}}`,
		`{"type":"image_url",EMPTY,"image_url":{"url":"ONE"}}`,
		`{"type":"prompt_embeds",EMPTY,"prompt_embeds":"ONE"}`,
		`{"type":"document",EMPTY,"source":{"type":"content","url":"","content":[{"type":"text","text":"ONE"}]}}`,
		`{"type":"text","text":"ONE",EMPTY}`,
	} {
		for _, empty := range []string{
			`"text":""`, `"text":null`, `"content":""`, `"content":[]`, `"content":[ ]`, `"thinking":""`, `"input":""`, `"input":{}`, `"prompt_embeds":""`,
			`"image_url":{"url":""}`, `"image_url":{"url":"","detail":"auto"}`, `"image_url":""`, `"image":{"url":""}`, `"image":{}`, `"input_audio":{"data":"","format":""}`, `"video_url":{"url":null}`,
			`"file":{"file_id":"","file_data":"","filename":""}`, `"file_id":""`, `"source":{"type":"","media_type":"","data":"","url":""}`, `"uuid":""`,
			`"text":"","content":"","thinking":"","input":{},"image_url":{"url":""},"video_url":{"url":""}`,
		} {
			if name, _, _ := strings.Cut(empty, ":"); strings.Count(part, name+":") > 0 {
				continue // the last of one name counts
			}
			chat := `{"messages":[{"role":"user","content":[` + part + `,{"type":"text","text":"go on"}]}]}`
			full := strings.Replace(chat, "EMPTY", empty, 1)
			wantDifferent(t, Messages, full, strings.Replace(full, "ONE", "TWO", 1))
			if !strings.Contains(part, `"redacted_thinking"`) { // printed as it came
				wantSame(t, Messages, full, strings.Replace(chat, ",EMPTY", "", 1))
			}
		}
	}
}

func TestEmptyOptionsAreNone(t *testing.T) {
	plain := `{"messages":[{"role":"user","content":"a"}]}`
	for _, option := range []string{`"chat_template_kwargs":{}`, `"documents":[ ]`, `"mm_processor_kwargs":{ }`, `"tools":[]`, `"reasoning":{}`, `"output_config":{"format":null}`, `"output_config":{"effort":""}`,
		`"reasoning_effort":""`, `"chat_template":""`, `"think":""`, `"previous_response_id":""`, `"system":""`, `"system":[]`, `"instructions":""`} {
		wantSame(t, Chat, plain, `{`+option+`,`+plain[1:])
	}
	prompt := `{"model":"m","prompt":"a"}`
	for _, option := range []string{`"template":""`, `"system":""`, `"context":[]`, `"context":[ ]`, `"think":""`, `"inputs":""`, `"input_ids":[]`, `"messages":[]`} {
		wantSame(t, Generate, prompt, `{`+option+`,`+prompt[1:])
	}
	wantSame(t, Generate, `{"input_ids":[1]}`, `{"text":"","input_ids":[1]}`)
	wantDifferent(t, Chat, plain, `{"documents":[{}],`+plain[1:])
}

// The same of what stands beside messages, parts and tools.
func TestAnEmptyMemberHidesNothingOfARequest(t *testing.T) {
	for _, x := range []struct {
		kind Kind
		body string
	}{
		{Tokenize, `{"messages":[],"prompt":"ONE"}`},
		{Embeddings, `{"messages":[ ],"input":["ONE"]}`},
		{Invocations, `{"messages":[],"prompt":"","input":"ONE"}`},
		{Invocations, `{"messages":[],"prompt":"ONE"}`},
		{Invocations, `{"prompt":"ONE","text":[]}`},
		{Responses, `{"input":[{"type":"reasoning","summary":[{"text":"ONE"}],"content":[]}]}`},
		{Responses, `{"input":[{"type":"web_search_call","role":"","content":"","output":"","action":{"query":"ONE"}}]}`},
		{Responses, `{"input":[{"type":"web_search_call","content":[],"summary":[],"arguments":"","action":{"query":"ONE"}}]}`},
		{Responses, `{"tools":[{"type":"mcp","name":"","function":{},"server_label":"ONE"}],"input":"a"}`},
		{Responses, `{"tools":[{"type":"mcp","name":"","function":null,"server_label":"ONE"}],"input":"a"}`},
		{Rerank, `{"query":"a","documents":[{"content":"","text":"","image":"ONE"}]}`},
		{Embeddings, `{"input":[{"content":[],"image":{"url":"ONE"}}]}`},
	} {
		wantDifferent(t, x.kind, x.body, strings.Replace(x.body, "ONE", "TWO", 1))
	}
	wantSame(t, Responses, `{"input":[{"type":"message","role":"user","content":"","id":"1"},{"role":"user","content":"a"}]}`,
		`{"input":[{"type":"message","role":"user","content":"","id":"2"},{"role":"user","content":"a"}]}`)
}

// Adapters of one base share no cache, however an engine is told of them.
func TestAdaptersOfEveryEngineSeparate(t *testing.T) {
	long := quoted(words(1, 1000))
	for _, x := range []struct {
		kind Kind
		body string
	}{
		{Generate, `{"inputs":` + long + `,"parameters":{"adapter_id":"1"}}`},
		{Generate, `{"text":` + long + `,"lora_path":"1"}`},
		{Completions, `{"prompt":` + long + `,"lora":[{"id":"1","scale":1}]}`},
		{Chat, `{"messages":[{"role":"user","content":` + long + `}],"lora":[{"id":"1","scale":1}]}`},
	} {
		if n := shared(scanned(t, x.kind, x.body).Chain, scanned(t, x.kind, strings.ReplaceAll(x.body, `"1"`, `"2"`)).Chain); n != 0 {
			t.Errorf("%.80s: two adapters share %d blocks", x.body, n)
		}
	}
}

// Code to be filled in is told apart by the files that come along and by what
// stands before the gap, in the order in which llama.cpp puts them.
func TestCodeThatIsFilledInHasAPrefix(t *testing.T) {
	head, extra := words(1, 1000), quoted(words(2, 1000))
	body := `{"input_suffix":"}","prompt":"x := ","input_prefix":` + quoted(head) + `,"input_extra":[{"filename":"a.go","text":` + extra + `}],"n_predict":16}`
	base := scanned(t, KindOf("/infill"), body)
	typed := scanned(t, KindOf("/infill"), strings.ReplaceAll(body, `"prompt":"x := "`, `"prompt":"x := foo("`))
	if n := shared(base.Chain, typed.Chain); n < 2000/block {
		t.Errorf("%d blocks shared while a line is typed, want %d", n, 2000/block)
	}
	if base.whole == typed.whole {
		t.Error("the line under way isn't in the key")
	}
	if n := shared(base.Chain, scanned(t, Completions, strings.ReplaceAll(body, "a.go", "b.go")).Chain); n != 0 {
		t.Errorf("%d blocks shared with another file, want 0", n)
	}
	wantSame(t, Completions, body, strings.ReplaceAll(body, `"}"`, `"\n}"`))
}

// Forms, webhooks and JSON-RPC go to an address alone as well as TGI's prompts.
func TestAnAddressAloneTakesPromptsOfTGIOnly(t *testing.T) {
	kind := KindOf("/")
	long := quoted(words(1, 1000))
	p := scanned(t, kind, `{"inputs":`+long+`,"parameters":{"max_new_tokens":9},"stream":true}`)
	if same := scanned(t, Generate, `{"inputs":`+long+`}`); !slices.Equal(p.Chain, same.Chain) || !p.Kind.Generates() || p.MaxTokens != 9 || !p.Stream {
		t.Errorf("%d blocks of %d, %+v", shared(p.Chain, same.Chain), len(same.Chain), p.Prompt)
	}
	wantSame(t, kind, `{"inputs":"a","text":"b","prompt":"c"}`, `{"messages":[{"role":"user","content":"d"}],"inputs":"a"}`)
	var s Scanner
	for _, body := range []string{`{"jsonrpc":"2.0","method":"m","id":1,"params":{"inputs":"a"}}`, `{"text":"a deploy is done"}`, `{"prompt":"a"}`,
		`{"input":"a"}`, `{"messages":[{"role":"user","content":"a"}]}`, `{"inputs":""}`, `{"inputs":null,"text":"a"}`} {
		if _, status := s.Scan(kind, []byte(body), true, block); status != NoPrompt {
			t.Errorf("%s: status %d, want NoPrompt", body, status)
		}
	}
}

func TestTritonsTextIsAPrompt(t *testing.T) {
	kind := KindOf("/v2/models/ensemble/generate_stream")
	wantDifferent(t, kind, `{"text_input":"a","parameters":{"stream":true},"bad_words":""}`, `{"text_input":"b","parameters":{"stream":true},"bad_words":""}`)
}
