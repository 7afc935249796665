package vllmapi

import (
	"fmt"
	"strings"
	"testing"
)

// The same request gets the same answer, streamed or not, now or later, from
// this server or another of the same seed.
func TestTheSameRequestGetsTheSameText(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		twin := newBench(t, benchEngine, 1)
		other := newBench(t, benchEngine, 1, func(c *Config) { c.Seed = 2 })
		const messages = `"messages":[{"role":"user","content":"Tell me."}]`
		first := b.post(chatPath, `{`+messages+`}`).whole(t).Choices[0]
		text := first.Message.Content
		if text == "" || first.Message.Role != "assistant" {
			t.Fatalf("the message is %+v", first.Message)
		}
		if got := b.post(chatPath, `{`+messages+`}`).whole(t).Choices[0].Message.Content; got != text {
			t.Errorf("again: %q, want %q", got, text)
		}
		if got := twin.post(chatPath, `{`+messages+`}`).whole(t).Choices[0].Message.Content; got != text {
			t.Errorf("a twin: %q, want %q", got, text)
		}
		if got := said(b.post(chatPath, `{"stream":true,`+messages+`}`).events(t), 0); got != text {
			t.Errorf("streamed: %q, want %q", got, text)
		}
		seeded := b.post(chatPath, `{"seed":5,`+messages+`}`).whole(t).Choices[0].Message.Content
		if got := other.post(chatPath, `{"seed":5,`+messages+`}`).whole(t).Choices[0].Message.Content; got != seeded {
			t.Errorf("a request's seed: %q, want %q", got, seeded)
		}
		for name, got := range map[string]string{
			"another server seed":  other.post(chatPath, `{`+messages+`}`).whole(t).Choices[0].Message.Content,
			"another request seed": seeded,
			"another prompt":       b.post(chatPath, `{"messages":[{"role":"user","content":"Tell me!"}]}`).whole(t).Choices[0].Message.Content,
		} {
			if got[:12] == text[:12] {
				t.Errorf("%s says the same: %q", name, got)
			}
		}
	})
}

func TestRepliesEndByThemselvesOrAtTheirBound(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		finishes := map[string]int{}
		for i := range 60 {
			v := b.post(textPath, fmt.Sprintf(`{"prompt":"%d","max_tokens":136}`, i)).whole(t)
			finish := *v.Choices[0].FinishReason
			finishes[finish]++
			n, text := v.Usage.CompletionTokens, len(v.Choices[0].Text)
			if finish == "stop" && text != 4*(n-1) || finish == "length" && (n != 136 || text != 4*n) {
				t.Errorf("prompt %d: %d tokens, %d bytes, %s", i, n, text, finish)
			}
		}
		if finishes["stop"] < 10 || finishes["length"] < 10 || len(finishes) != 2 {
			t.Errorf("finish reasons %v, want some of each", finishes)
		}
		if v := b.post(textPath, `{"prompt":"x"}`).whole(t); v.Usage.CompletionTokens != 16 {
			t.Errorf("%d tokens by default, want 16", v.Usage.CompletionTokens)
		}
		if s := b.driver.Stats(); s.FinishedStop != uint64(finishes["stop"]) || s.FinishedLength != uint64(finishes["length"])+1 {
			t.Errorf("the engine counts %d and %d", s.FinishedStop, s.FinishedLength)
		}
	})
}

func TestStopStringsEndAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		const rest = `"prompt":"x","max_tokens":30,"ignore_eos":true}`
		text := b.post(textPath, `{`+rest).whole(t).Choices[0].Text
		stop := text[41:47] // ends in the twelfth token
		for _, member := range []string{fmt.Sprintf(`"stop":%q`, stop), fmt.Sprintf(`"stop":["absent!",%q]`, stop)} {
			v := b.post(textPath, `{`+member+`,`+rest).whole(t)
			c := v.Choices[0]
			if c.Text != text[:41] || *c.FinishReason != "stop" || c.StopReason != stop || v.Usage.CompletionTokens != 12 {
				t.Errorf("%s: %+v, %d tokens", member, c, v.Usage.CompletionTokens)
			}
			events := b.post(textPath, `{"stream":true,`+member+`,`+rest).events(t)
			end := events[len(events)-1].Choices[0]
			if got := said(events, 0); got != text[:41] || *end.FinishReason != "stop" || end.StopReason != stop {
				t.Errorf("%s, streamed: %q, %+v", member, got, end)
			}
		}
		v := b.post(textPath, fmt.Sprintf(`{"stop":%q,"include_stop_str_in_output":true,%s`, stop, rest)).whole(t)
		if v.Choices[0].Text != text[:47] {
			t.Errorf("with the stop string: %q, want %q", v.Choices[0].Text, text[:47])
		}
		v = b.post(textPath, `{"min_tokens":20,`+fmt.Sprintf(`"stop":%q,%s`, text[41:43], rest)).whole(t)
		if v.Usage.CompletionTokens <= 20 {
			t.Errorf("%d tokens, want more than min_tokens", v.Usage.CompletionTokens)
		}
		b.idle()
	})
}

func TestSeveralChoicesShareTheirPrompt(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		const rest = `"n":2,"max_tokens":50,"ignore_eos":true,"messages":[{"role":"user","content":"` // and the text
		long := strings.Repeat("word", 400)
		v := b.post(chatPath, `{`+rest+long+`"}]}`).whole(t)
		if len(v.Choices) != 2 || v.Choices[0].Index != 0 || v.Choices[1].Index != 1 {
			t.Fatalf("choices are %+v", v.Choices)
		}
		texts := []string{v.Choices[0].Message.Content, v.Choices[1].Message.Content}
		if texts[0] == texts[1] || len(texts[0]) != 200 || len(texts[1]) != 200 {
			t.Errorf("the choices are %q", texts)
		}
		if v.Usage.PromptTokens != 410 || v.Usage.CompletionTokens != 100 || v.Usage.TotalTokens != 510 {
			t.Errorf("usage %+v", *v.Usage)
		}
		// Of 410 tokens the second choice found 400 that the first was given.
		if s := b.driver.Stats(); s.PrefixQueries != 820 || s.PrefixHits != 400 {
			t.Errorf("%d of %d tokens hit, want 400 of 820", s.PrefixHits, s.PrefixQueries)
		}
		events := b.post(chatPath, `{"stream":true,`+rest+long+`"}]}`).events(t)
		for i := range 2 {
			c := events[i].Choices[0]
			if c.Index != i || c.Delta.Role == nil || *c.Delta.Role != "assistant" {
				t.Errorf("event %d is %+v, want the role of choice %d", i, c, i)
			}
			if got := said(events, i); got != texts[i] {
				t.Errorf("choice %d, streamed: %q, want %q", i, got, texts[i])
			}
		}
		finished := 0
		for _, e := range events {
			if len(e.Choices) != 1 {
				t.Errorf("event %+v has not one choice", e)
			} else if e.Choices[0].FinishReason != nil {
				finished++
			}
		}
		if finished != 2 {
			t.Errorf("%d choices finished, want 2", finished)
		}
		b.idle()
	})
}

func TestSeveralPromptsGetTheirChoicesInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		v := b.post(textPath, `{"prompt":["one","other one"],"n":2,"max_tokens":3,"echo":true}`).whole(t)
		if len(v.Choices) != 4 {
			t.Fatalf("%d choices, want 4", len(v.Choices))
		}
		for i, c := range v.Choices {
			want := []string{"one", "other one"}[i/2]
			if c.Index != i || !strings.HasPrefix(c.Text, want) || len(c.Text) != len(want)+12 {
				t.Errorf("choice %d is %+v", i, c)
			}
		}
		if v.Usage.PromptTokens != 2+4 || v.Usage.CompletionTokens != 12 {
			t.Errorf("usage %+v", *v.Usage)
		}
		streamed := b.post(textPath, `{"prompt":["one","other one"],"n":2,"max_tokens":3,"echo":true,"stream":true}`).events(t)
		for i, c := range v.Choices {
			if got := said(streamed, i); got != c.Text {
				t.Errorf("choice %d, streamed: %q, want %q", i, got, c.Text)
			}
		}
		b.idle()
	})
}
