package vllmapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

const messagesPath = "/v1/messages"

// A conversation over the Messages API has the tokens of the same chat.
func TestMessagesHaveTheTokensOfTheChat(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		chat := b.post(chatPath, `{"max_tokens":9,"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"one\ntwo"},
			{"role":"assistant","content":"Wait.","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]},{"role":"tool","tool_call_id":"c","content":"done"}]}`).whole(t)
		r := b.post(messagesPath, `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"x-anthropic-billing-header: 123"},{"type":"text","text":"Be kind."}],"messages":[
			{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Wait."},{"type":"tool_use","id":"c","name":"f","input":{"a":1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"done"}]}]}]}`)
		var v struct {
			Content []struct{ Text string }
			Usage   struct {
				Input   int `json:"input_tokens"`
				Created int `json:"cache_creation_input_tokens"`
				Read    int `json:"cache_read_input_tokens"`
				Output  int `json:"output_tokens"`
			}
			StopReason string `json:"stop_reason"`
		}
		if err := json.Unmarshal(r.Body.Bytes(), &v); err != nil || r.Code != 200 {
			t.Fatalf("%d %s: %v", r.Code, r.Body, err)
		}
		if v.Content[0].Text != chat.Choices[0].Message.Content || v.Usage.Input+v.Usage.Created+v.Usage.Read != chat.Usage.PromptTokens || v.Usage.Read != (chat.Usage.PromptTokens-1)/16*16 || v.StopReason != "max_tokens" {
			t.Errorf("the chat is %+v, the message %s", chat, r.Body)
		}
	})
}

func TestMessagesRefuseInTheirOwnShape(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		for _, c := range []struct {
			body   string
			status int
			want   string
		}{
			{`{"model":"x","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, 404, `{"type":"error","error":{"type":"NotFoundError"`},
			{`{"model":"m","max_tokens":1,"temperature":-1,"messages":[{"role":"user","content":"x"}]}`, 400, `{"type":"error","error":{"type":"BadRequestError","message":"temperature must be non-negative, got -1.0.`},
			{`{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"x"}]}`, 400, `'type': 'value_error', 'loc': 'body.max_tokens', 'msg': 'Value error, max_tokens must be positive', 'input': '0'`},
			{`{"model":"m","max_tokens":1,"messages":[{"role":"none","content":"x"}]}`, 400, `'loc': 'body.messages.0.role', 'msg': "Input should be 'user', 'assistant' or 'system'"`},
			{`{"max_tokens":1,"messages":[]}`, 400, `'loc': 'body.model'`},
		} {
			r := b.post(messagesPath, c.body)
			if got := strings.ReplaceAll(r.Body.String(), `\"`, `"`); r.Code != c.status || !strings.Contains(got, c.want) {
				t.Errorf("%s: %d %s", c.body, r.Code, r.Body)
			}
		}
	})
}

// Blocks open and close one after the other, and say what the whole answer says.
func TestMessagesStreamBlocksInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, benchEngine, 1, func(c *Config) { c.Reasoning = true })
		const tools = `"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"integer"}}}}],"tool_choice":{"type":"auto"},`
		kinds := map[string]int{}
		for i := range 20 {
			body := fmt.Sprintf(`"model":"m","max_tokens":600,%s"messages":[{"role":"user","content":"%d"}]}`, tools, i)
			var whole struct {
				Content []struct {
					Type, Text, Thinking, Name string
					Input                      json.RawMessage
				}
				StopReason string `json:"stop_reason"`
			}
			if err := json.Unmarshal(b.post(messagesPath, "{"+body).Body.Bytes(), &whole); err != nil {
				t.Fatal(err)
			}
			var blocks []string
			stop := ""
			for _, e := range strings.Split(strings.TrimSpace(b.post(messagesPath, `{"stream":true,`+body).Body.String()), "\n\n") {
				var v struct {
					Type  string
					Index int
					Block struct{ Type, Name string } `json:"content_block"`
					Delta struct {
						Text, Thinking string
						JSON           string `json:"partial_json"`
						Stop           string `json:"stop_reason"`
					}
				}
				_, data, _ := strings.Cut(e, "data: ")
				if err := json.Unmarshal([]byte(data), &v); err != nil || !strings.HasPrefix(e, "event: "+v.Type+"\n") {
					t.Fatalf("event %q: %v", e, err)
				}
				switch v.Type {
				case "content_block_start":
					blocks = append(blocks, v.Block.Type+" "+v.Block.Name)
					kinds[v.Block.Type]++
					fallthrough
				case "content_block_delta", "content_block_stop":
					if v.Index != len(blocks)-1 {
						t.Errorf("%s with index %d in block %d", v.Type, v.Index, len(blocks)-1)
					}
					blocks[v.Index] += v.Delta.Text + v.Delta.Thinking + v.Delta.JSON
				case "message_delta":
					stop = v.Delta.Stop
				}
			}
			var want []string
			for _, c := range whole.Content {
				want = append(want, c.Type+" "+c.Name+c.Text+c.Thinking+pyIf(c.Input))
			}
			if fmt.Sprint(blocks) != fmt.Sprint(want) || stop != whole.StopReason {
				t.Errorf("streamed %q, %s; want %q, %s", blocks, stop, want, whole.StopReason)
			}
		}
		if kinds["thinking"] != 20 || kinds["tool_use"] < 4 || kinds["text"] < 4 {
			t.Errorf("blocks were %v, want some of each", kinds)
		}
	})
}

func pyIf(raw json.RawMessage) string {
	if raw == nil {
		return ""
	}
	return pythonJSON(raw)
}
