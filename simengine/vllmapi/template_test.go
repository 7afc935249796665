package vllmapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// render is the prompt of a chat body's members.
func render(t *testing.T, members string) []token {
	t.Helper()
	f := parseForm([]byte("{" + members + "}"))
	tokens := readConversation(f, true).tokens()
	if f.err != nil {
		t.Fatalf("rendering %s: %v", members, f.err)
	}
	return tokens
}

func TestEqualChatsHaveEqualTokens(t *testing.T) {
	want := render(t, `"messages":[{"role":"user","content":"caf\u00e9 / tea"},{"role":"assistant","content":null},{"role":"user","content":"x"}]`)
	for name, members := range map[string]string{
		"one part":       `"messages":[{"role":"user","content":[{"type":"text","text":"café / tea"}]},{"role":"assistant"},{"role":"user","content":"x"}]`,
		"other spelling": ` "messages" : [ {"content":"caf\u00e9 \/ tea","role":"user"} , {"role":"assistant","content":""},{"role":"user","content":[{"text":"x","type":"text"}]}]`,
		"settings":       `"temperature":0.5,"messages":[{"role":"user","content":"café / tea"},{"role":"assistant","content":[]},{"role":"user","content":"x"}],"user":"u"`,
		"input_text":     `"messages":[{"role":"user","content":[{"type":"input_text","text":"café / tea"}]},{"role":"assistant","tool_calls":[]},{"role":"user","content":"x"}]`,
	} {
		if got := render(t, members); !slices.Equal(got, want) {
			t.Errorf("%s: other tokens than as strings", name)
		}
	}
}

func TestSeveralTextsAreJoinedByALineFeed(t *testing.T) {
	parts := render(t, `"messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}]`)
	text := render(t, `"messages":[{"role":"user","content":"one\ntwo"}]`)
	if !slices.Equal(parts, text) {
		t.Errorf("two texts are %q, want %q", detokenize(parts), detokenize(text))
	}
}

func TestWhatDiffersHasOtherTokens(t *testing.T) {
	seen := map[string]string{}
	for _, members := range []string{
		`"messages":[{"role":"user","content":"ab"}]`,
		`"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]`,
		`"messages":[{"role":"system","content":"ab"}]`,
		`"messages":[{"role":"user","name":"n","content":"ab"}]`,
		`"messages":[{"role":"usern","content":"ab"}]`,
		`"messages":[{"role":"tool","tool_call_id":"c","content":"ab"}]`,
		`"messages":[{"role":"tool","content":"cab"}]`,
		`"messages":[{"role":"user","content":"ab"}],"tools":[{"type":"function","function":{"name":"f"}}]`,
		`"messages":[{"role":"user","content":"ab"}],"tools":[{"type":"function","function":{"name":"g"}}]`,
		`"messages":[{"role":"user","content":"ab"}],"add_generation_prompt":false`,
		`"messages":[{"role":"user","content":"ab"}],"add_generation_prompt":false,"continue_final_message":true`,
		`"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}]`,
		`"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{ }"}}]}]`,
		`"messages":[{"role":"assistant","tool_calls":[{"id":"2","function":{"name":"f","arguments":"{}"}}]}]`,
		`"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,a"}},{"type":"text","text":"ab"}]}]`,
		`"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,b"}},{"type":"text","text":"ab"}]}]`,
		`"messages":[{"role":"user","content":[{"type":"text","text":"ab"},{"type":"image_url","image_url":{"url":"data:,a"}}]}]`,
		`"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"YQ==","format":"wav"}}]}]`,
		`"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"Yg==","format":"wav"}}]}]`,
	} {
		key := fmt.Sprint(render(t, members))
		if other, ok := seen[key]; ok {
			t.Errorf("same tokens:\n%s\n%s", members, other)
		}
		seen[key] = members
	}
}

func TestAPictureHasAFixedNumberOfTokens(t *testing.T) {
	short := render(t, `"messages":[{"role":"user","content":[{"type":"image_url","image_url":"http://h/i.png"}]}]`)
	long := render(t, `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+strings.Repeat("A", 9999)+`"}}]}]`)
	none := render(t, `"messages":[{"role":"user","content":[]}]`)
	if len(short)-len(none) != mediaTokens || len(long)-len(none) != mediaTokens {
		t.Errorf("pictures have %d and %d tokens, want %d", len(short)-len(none), len(long)-len(none), mediaTokens)
	}
}

// Tools come before everything that a conversation adds, and don't depend on
// the style of their JSON.
func TestToolsStandInFrontOfTheSystemText(t *testing.T) {
	const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"z":1,"a":[true,null,"é"]}}}]`
	const spaced = `"tools": [ {"type":"function", "function": {"name":"f","parameters":{"z":1, "a":[ true, null, "\u00e9" ]}} } ]`
	system := render(t, tools+`,"messages":[{"role":"system","content":"S"},{"role":"user","content":"u"}]`)
	other := render(t, `"messages":[{"role":"system","content":"S"},{"role":"user","content":"u"}],`+spaced)
	if !slices.Equal(system, other) {
		t.Errorf("tools differ by style:\n%q\n%q", detokenize(system), detokenize(other))
	}
	text := detokenize(system)
	if tool, s := strings.Index(text, `{"type":"function","function":{"name":"f","parameters":{"z":1,"a":[true,null,"é"]}}}`), strings.LastIndex(text, "S"); tool < 0 || s < tool {
		t.Errorf("the prompt is %q", text)
	}
	without := render(t, tools+`,"messages":[{"role":"user","content":"u"}]`)
	shared := 0
	for shared < len(without) && without[shared] == system[shared] {
		shared++
	}
	if shared < 20 {
		t.Errorf("with and without a system text only %d tokens are equal", shared)
	}
}

// The next turn begins with this turn's prompt and reply.
func TestAReplySentBackHasTheTokensThatWereGenerated(t *testing.T) {
	first := render(t, `"messages":[{"role":"user","content":"Hello?"}]`)
	for seed := range uint64(20) {
		r := plan(seed, limits{maxTokens: 300}, script{})
		next := render(t, `"messages":[{"role":"user","content":"Hello?"},{"role":"assistant","content":"`+r.text()+`"},{"role":"user","content":"More?"}]`)
		if so := r.appendTokens(slices.Clone(first), 0, r.count); !slices.Equal(next[:len(so)], so) {
			t.Errorf("seed %d: the second prompt doesn't begin with the first and its reply", seed)
		}
	}
}
