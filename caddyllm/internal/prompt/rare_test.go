package prompt

import "testing"

// Who wants the log probabilities of a prompt has all of it computed, whatever
// is cached of it.
func TestAPromptThatIsScoredIsNotLookedForInTheCache(t *testing.T) {
	const chat, text, ids = `"messages":[{"role":"user","content":"a"}]`, `"prompt":"a"`, `"token_ids":[1,2]`
	for _, c := range []struct {
		kind           Kind
		prompt, asks   string
		unread, unkept bool
	}{
		{Chat, chat, `"prompt_logprobs":3`, true, false},
		{Chat, chat, `"prompt_logprobs":0`, true, false},
		{Chat, chat, `"prompt_logprobs":-1`, true, false},
		{Chat, chat, `"prompt_logprobs":null`, false, false},
		{Chat, chat, `"logprobs":true,"top_logprobs":5`, false, false},
		{Chat, chat, `"echo":true`, true, false},
		{Chat, chat, `"echo":false,"logprobs":true`, false, false},
		{Responses, `"input":"a"`, `"prompt_logprobs":1`, true, false},
		{Completions, text, `"prompt_logprobs":0`, true, false},
		{Completions, text, `"echo":true,"logprobs":1`, true, false},
		{Completions, text, `"logprobs":0,"echo":true`, true, false},
		{Completions, text, `"echo":true,"logprobs":null`, false, false},
		{Completions, text, `"echo":true`, false, false},
		{Completions, text, `"logprobs":5`, false, false},
		{Completions, text, `"best_of":4,"n":2,"use_beam_search":true`, false, false},
		{Completions, text, `"cache_prompt":false`, true, false},
		{Completions, text, `"cache_prompt":true`, false, false},
		{Invocations, text, `"echo":true,"logprobs":1`, true, false},
		{Invocations, chat, `"echo":true`, true, false},
		{Generate, ids, `"sampling_params":{"prompt_logprobs":0}`, true, false},
		{Generate, ids, `"sampling_params":{"prompt_logprobs":null}`, false, false},
		{Generate, ids, `"sampling_params":{"skip_reading_prefix_cache":true}`, true, false},
		{Generate, ids, `"sampling_params":{"prompt_logprobs":1,"skip_reading_prefix_cache":false}`, false, false},
		{Generate, `"text":"a"`, `"return_logprob":true,"logprob_start_len":0`, true, false},
		{Generate, `"text":"a"`, `"return_logprob":true,"logprob_start_len":-1`, false, false},
		{Generate, `"text":"a"`, `"return_logprob":true`, false, false},
		{Generate, `"text":"a"`, `"logprob_start_len":0`, false, false},
		{Generate, `"inputs":"a"`, `"parameters":{"decoder_input_details":true}`, true, true},
		{Generate, `"inputs":"a"`, `"parameters":{"decoder_input_details":false}`, false, false},
	} {
		for _, body := range []string{`{` + c.prompt + `,` + c.asks + `}`, `{` + c.asks + `,` + c.prompt + `}`} {
			if p := scanned(t, c.kind, body); p.Unread != c.unread || p.Unkept != c.unkept {
				t.Errorf("%v %s: unread %t and unkept %t, want %t and %t", c.kind, body, p.Unread, p.Unkept, c.unread, c.unkept)
			}
		}
	}
}

func TestAResponseInTheBackgroundSaysSo(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		body string
		want bool
	}{
		{Responses, `{"input":"a","background":true}`, true},
		{Responses, `{"background":true,"input":"a","echo":1}`, true},
		{Responses, `{"input":"a","background":false}`, false},
		{Responses, `{"input":"a","background":null}`, false},
		{Responses, `{"input":"a","metadata":{"background":true}}`, false},
		{Chat, `{"messages":[{"role":"user","content":"a"}],"background":true}`, false},
	} {
		if p := scanned(t, c.kind, c.body); p.Background != c.want {
			t.Errorf("%v %s: background is %t, want %t", c.kind, c.body, p.Background, c.want)
		}
	}
}

// What is looked for in a second walk must be seen by the first.
func TestTheFirstWalkSeesAllRareMembers(t *testing.T) {
	seen := 0
	for _, name := range []string{"background", "echo", "logprobs", "return_logprob", "logprob_start_len", "cache_prompt", "prompt_logprobs", "skip_reading_prefix_cache", "decoder_input_details"} {
		if topField([]byte(name)) == fRare && rareFieldOf([]byte(name)) != rNone {
			seen++
		}
	}
	if want := int(nRareFields) - 2; seen != want { // but for rNone and rEverywhere
		t.Errorf("%d names of %d are seen", seen, want)
	}
}
