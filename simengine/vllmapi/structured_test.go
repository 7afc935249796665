package vllmapi

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// person is a schema with what clients' libraries make of nested types.
const person = `{"$defs":{"Pet":{"properties":{"name":{"type":"string"},"legs":{"type":"integer","minimum":2,"maximum":8}},"required":["name","legs"],"type":"object"}},` +
	`"properties":{"age":{"type":"integer","exclusiveMinimum":17,"maximum":20},"mood":{"enum":["glad","sad"]},"pets":{"type":"array","items":{"$ref":"#/$defs/Pet"}},` +
	`"code":{"type":"string","pattern":"^[A-Z]{3}-[0-9]+$"},"self":{"$ref":"#"}},"type":"object"}`

// Who asks for JSON gets it, whatever the API, streamed or not, and finds it in
// the cache when it comes back as the assistant's message.
func TestJSONObjects(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		for i := range 40 {
			body := fmt.Sprintf(`{"messages":[{"role":"user","content":"as JSON, %d"}],"prompt":"as JSON, %d","response_format":{"type":"json_object"},"max_tokens":200`, i, i)
			whole := b.post(chatPath, body+`}`).whole(t)
			text := whole.Choices[0].Message.Content
			var object map[string]any
			if err := json.Unmarshal([]byte(text), &object); err != nil || len(object) == 0 || *whole.Choices[0].FinishReason != "stop" {
				t.Fatalf("%q, %s: %v", text, *whole.Choices[0].FinishReason, err)
			}
			if got := said(b.post(chatPath, body+`,"stream":true}`).events(t), 0); got != text {
				t.Errorf("streamed %q, whole %q", got, text)
			}
			if text := b.post(textPath, body+`}`).whole(t).Choices[0].Text; json.Unmarshal([]byte(text), &object) != nil {
				t.Errorf("a completion says %q", text)
			}
		}
		const input = `{"input":"as JSON","text":{"format":{"type":"json_object"}}}`
		var answer struct {
			Output []struct{ Content []struct{ Text string } }
		}
		r := b.post("/v1/responses", input)
		if err := json.Unmarshal(r.Body.Bytes(), &answer); err != nil || !json.Valid([]byte(answer.Output[0].Content[0].Text)) {
			t.Errorf("/v1/responses: %s: %v", r.Body, err)
		}
		messages := `{"role":"user","content":"` + strings.Repeat("as JSON ", 20) + `"}`
		const form = `"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":` + person + `}}`
		first := b.post(chatPath, `{"messages":[`+messages+`],`+form+`}`).whole(t)
		messages += fmt.Sprintf(`,{"role":"assistant","content":%q},{"role":"user","content":"More."}`, first.Choices[0].Message.Content)
		if v := b.post(chatPath, `{"messages":[`+messages+`]}`).whole(t); v.cached() != (first.Usage.TotalTokens-1)/16*16 {
			t.Errorf("%d tokens cached of the %d before", v.cached(), first.Usage.TotalTokens)
		}
		b.idle()
	})
}

func TestJSONOfASchema(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		code := regexp.MustCompile(`^[A-Z]{3}-[0-9]+$`)
		for i, form := range []string{
			`"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":` + person + `}}`,
			`"structured_outputs":{"json":` + person + `}`,
			fmt.Sprintf(`"structured_outputs":{"json":%q}`, "\n "+person+" "),
		} {
			for n := range 20 {
				body := fmt.Sprintf(`{"messages":[{"role":"user","content":"%d"}],%s,"max_tokens":2000}`, n, form)
				text := b.post(chatPath, body).whole(t).Choices[0].Message.Content
				var p struct {
					Age  *int
					Mood string
					Pets []struct {
						Name string
						Legs int
					}
					Code string
				}
				if err := json.Unmarshal([]byte(text), &p); err != nil {
					t.Fatalf("form %d: %q: %v", i, text, err)
				}
				if p.Age == nil || *p.Age < 18 || *p.Age > 20 || !slices.Contains([]string{"glad", "sad"}, p.Mood) || len(p.Pets) == 0 ||
					p.Pets[0].Name == "" || p.Pets[0].Legs < 2 || p.Pets[0].Legs > 8 || !code.MatchString(p.Code) {
					t.Errorf("form %d: %q", i, text)
				}
			}
		}
	})
}

func TestChoicesAndPatterns(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		seen := map[string]bool{}
		for n := range 20 {
			ask := func(constraint string) string {
				return b.post(textPath, fmt.Sprintf(`{"prompt":"%d","structured_outputs":%s,"max_tokens":300}`, n, constraint)).whole(t).Choices[0].Text
			}
			choice := ask(`{"choice":["yes","no","größer ☃"]}`)
			if seen[choice] = true; !slices.Contains([]string{"yes", "no", "größer ☃"}, choice) {
				t.Errorf("the choice is %q", choice)
			}
			for _, pattern := range []string{`\\d{3}-\\w+@(home|work)\\.(com|org)?`, `[^a-z]+x*`, `(?i)hello|bye`, `^.{2,5}$`} {
				text := ask(`{"regex":"` + pattern + `"}`)
				if !regexp.MustCompile(`^(?:` + strings.ReplaceAll(pattern, `\\`, `\`) + `)$`).MatchString(text) {
					t.Errorf("%q doesn't match %s", text, pattern)
				}
			}
			if text := ask(`{"grammar":"root ::= \"x\""}`); text == "" {
				t.Error("a grammar silences the model")
			}
		}
		if len(seen) != 3 {
			t.Errorf("the choices are %v", seen)
		}
	})
}

// A reply whose tokens end before its form does is cut, as in vLLM.
func TestJSONIsCutAtMaxTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		v := b.post(chatPath, `{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_object"},"max_tokens":2}`).whole(t)
		if c := v.Choices[0]; *c.FinishReason != "length" || len(c.Message.Content) != 8 || v.Usage.CompletionTokens != 2 {
			t.Errorf("%+v, %+v", c, v.Usage)
		}
	})
}

func TestFormatsThatAreNone(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		for members, want := range map[string]string{
			`"response_format":{"type":"json_schema"}`:                                       "When response_format type is 'json_schema', the 'json_schema' field must be provided. (parameter=response_format)",
			`"structured_outputs":{}`:                                                        noConstraint,
			`"response_format":{"type":"json_schema","json_schema":{"name":"x"}}`:            noConstraint,
			`"structured_outputs":{"json":{},"regex":"a"}`:                                   "You can only use one kind of constraints for structured outputs ('json', 'regex' or 'choice').",
			`"structured_outputs":{"json":"{"}`:                                              "Invalid JSON grammar specification.",
			`"response_format":{"type":"json_schema","json_schema":{"schema":{}}}`:           "6 validation errors:",
			`"response_format":{"type":"xml"}`:                                               "6 validation errors:",
			`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":5}}`: "6 validation errors:",
		} {
			r := b.post(chatPath, `{"messages":[{"role":"user","content":"x"}],`+members+`}`)
			var e errorBody
			if err := json.Unmarshal(r.Body.Bytes(), &e); err != nil || r.Code != 400 {
				t.Errorf("%s: %d %s", members, r.Code, r.Body)
			}
			if message := e.Error.Message; message != want && !strings.HasPrefix(message, want+"\n") {
				t.Errorf("%s: %s, want %s", members, message, want)
			}
		}
	})
}

// Whatever a schema says, what is made up for it is JSON, of a bounded size, and
// the same each time.
func FuzzInvent(f *testing.F) {
	for _, schema := range []string{person, `{"$ref":"#"}`, `{"$ref":5,"minimum":"NaN"}`, `{"type":"integer","minimum":1e300}`, `{"type":"number","maximum":-1e400}`,
		`{"type":"string","pattern":"((a{1000}){1000})"}`, `{"type":"array","items":{"type":"array","items":{"$ref":"#"}}}`, `{"allOf":[{"$ref":"#/allOf/0"}]}`, `{"type":"string","pattern":"[\\x00-\\x1f]\\xff"}`} {
		f.Add(schema, uint64(1))
	}
	f.Fuzz(func(t *testing.T, schema string, seed uint64) {
		if !json.Valid([]byte(schema)) {
			return
		}
		form := &format{schema: json.RawMessage(schema)}
		text := form.invent(seed)
		if !json.Valid([]byte(text)) {
			t.Errorf("%q makes %q", schema, text)
		}
		if most := 8*schemaBytesMax + 8*len(schema); len(text) > most {
			t.Errorf("%q makes %d bytes, at most %d", schema, len(text), most)
		}
		if again := form.invent(seed); again != text {
			t.Errorf("%q makes %q, then %q", schema, text, again)
		}
	})
}
