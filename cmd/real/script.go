package main

import (
	"fmt"
	"strings"
)

// chat is a body for /v1/chat/completions, with more members. The sampling is
// greedy, so that a run can be repeated.
func chat(more string) string {
	return body(`"messages": [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "Where is my bicycle?"}]`, more)
}

// complete is a body for /v1/completions.
func complete(more string) string { return body(`"prompt": "A ride ends when"`, more) }

func body(prompt, more string) string {
	if !strings.Contains(more, `"temperature"`) {
		more += `, "temperature": 0`
	}
	return `{"model": "` + modelName + `", ` + prompt + `, ` + strings.TrimPrefix(more, ", ") + `}`
}

// bicycleTool leaves nothing to choose, so that a model of random weights gets to
// the end of a call.
const bicycleTool = `"tools": [{"type": "function", "function": {"name": "find_bicycle", "description": "Finds a bicycle.", "strict": true, ` +
	`"parameters": {"type": "object", "properties": {"number": {"type": "integer", "enum": [17]}}, "required": ["number"], "additionalProperties": false}}}]`

// longText has more tokens than the context that servers of the script have.
var longText = strings.Repeat("A ride ends when the lock is closed. ", 100)

// script is what "real record" asks of one server, in order.
func script() []exchange {
	const (
		chatPath     = "/v1/chat/completions"
		completePath = "/v1/completions"
	)
	all := []exchange{
		{name: "models", path: "/v1/models"},
		{name: "version", path: "/version"},
		{name: "health", path: "/health"},
		{name: "ping", path: "/ping"},
		{name: "load", path: "/load"},
		{name: "tokenize-prompt", path: "/tokenize", body: `{"model": "` + modelName + `", "prompt": "A ride ends when"}`},
		{name: "tokenize-messages", path: "/tokenize", body: `{"model": "` + modelName + `", "messages": [{"role": "user", "content": "Where?"}], "return_token_strs": true}`},
		{name: "detokenize", path: "/detokenize", body: `{"model": "` + modelName + `", "tokens": [60, 61, 62]}`},

		{name: "chat", path: chatPath, body: chat(`"max_tokens": 5`)},
		{name: "chat-without-model", path: chatPath, body: `{"messages": [{"role": "user", "content": "Where?"}], "max_tokens": 2, "temperature": 0}`},
		{name: "chat-n2", path: chatPath, body: chat(`"max_tokens": 3, "n": 2, "temperature": 1, "seed": 1`)},
		{name: "chat-logprobs", path: chatPath, body: chat(`"max_tokens": 2, "logprobs": true, "top_logprobs": 2`)},
		{name: "chat-max-completion-tokens", path: chatPath, body: chat(`"max_completion_tokens": 2`)},
		{name: "chat-parts", path: chatPath, body: body(`"messages": [{"role": "user", "content": [{"type": "text", "text": "Where?"}, {"type": "text", "text": " When?"}]}]`, `"max_tokens": 2`)},
		{name: "chat-stream", path: chatPath, body: chat(`"max_tokens": 4, "stream": true`)},
		{name: "chat-stream-usage", path: chatPath, body: chat(`"max_tokens": 4, "stream": true, "stream_options": {"include_usage": true}`)},
		{name: "chat-stream-continuous-usage", path: chatPath, body: chat(`"max_tokens": 3, "stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": true}`)},
		{name: "chat-stream-n2", path: chatPath, body: chat(`"max_tokens": 2, "stream": true, "n": 2, "temperature": 1, "seed": 1, "stream_options": {"include_usage": true}`)},
		{name: "chat-stream-logprobs", path: chatPath, body: chat(`"max_tokens": 2, "stream": true, "logprobs": true, "top_logprobs": 1`)},
		{name: "chat-tool-required", path: chatPath, body: chat(`"max_tokens": 60, "tool_choice": "required", ` + bicycleTool)},
		{name: "chat-tool-named", path: chatPath, body: chat(`"max_tokens": 60, "tool_choice": {"type": "function", "function": {"name": "find_bicycle"}}, ` + bicycleTool)},
		{name: "chat-tool-auto", path: chatPath, body: chat(`"max_tokens": 4, "tool_choice": "auto", ` + bicycleTool)},
		{name: "chat-tool-none", path: chatPath, body: chat(`"max_tokens": 4, "tool_choice": "none", ` + bicycleTool)},
		{name: "chat-stream-tool-required", path: chatPath, body: chat(`"max_tokens": 60, "stream": true, "tool_choice": "required", ` + bicycleTool)},
		{name: "chat-stream-tool-named", path: chatPath, body: chat(`"max_tokens": 60, "stream": true, "tool_choice": {"type": "function", "function": {"name": "find_bicycle"}}, ` + bicycleTool)},
		{name: "chat-tool-result", path: chatPath, body: body(`"messages": [{"role": "user", "content": "Where is 17?"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "find_bicycle", "arguments": "{\"number\": 17}"}}]}, {"role": "tool", "tool_call_id": "call_1", "content": "At the station."}]`, `"max_tokens": 2, `+bicycleTool)},
		{name: "chat-json-object", path: chatPath, body: chat(`"max_tokens": 8, "response_format": {"type": "json_object"}`)},
		{name: "chat-request-id", path: chatPath, header: []string{"X-Request-Id: from-the-client"}, body: chat(`"max_tokens": 1`)},
		{name: "chat-token-ids", path: chatPath, body: chat(`"max_tokens": 2, "return_token_ids": true`)},
		{name: "chat-orca-header", path: chatPath, header: []string{"endpoint-load-metrics-format: TEXT"}, body: chat(`"max_tokens": 1`)},
		{name: "chat-priority", path: chatPath, body: chat(`"max_tokens": 1, "priority": 1`)},
		{name: "chat-unknown-member", path: chatPath, body: chat(`"max_tokens": 1, "no_such_member": 1`)},

		{name: "completion", path: completePath, body: complete(`"max_tokens": 4`)},
		{name: "completion-default-length", path: completePath, body: complete(`"ignore_eos": true`)},
		{name: "completion-token-ids", path: completePath, body: body(`"prompt": [60, 61, 62]`, `"max_tokens": 2, "return_token_ids": true`)},
		{name: "completion-batch", path: completePath, body: body(`"prompt": ["A ride", "A fare"]`, `"max_tokens": 2`)},
		{name: "completion-echo", path: completePath, body: complete(`"max_tokens": 2, "echo": true`)},
		{name: "completion-logprobs", path: completePath, body: complete(`"max_tokens": 2, "logprobs": 1`)},
		{name: "completion-n2", path: completePath, body: complete(`"max_tokens": 2, "n": 2, "temperature": 1, "seed": 1`)},
		{name: "completion-stream", path: completePath, body: complete(`"max_tokens": 3, "stream": true`)},
		{name: "completion-stream-usage", path: completePath, body: complete(`"max_tokens": 3, "stream": true, "stream_options": {"include_usage": true}`)},
		{name: "completion-stream-continuous-usage", path: completePath, body: complete(`"max_tokens": 2, "stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": true}`)},
		{name: "completion-stream-echo", path: completePath, body: complete(`"max_tokens": 2, "stream": true, "echo": true`)},

		{name: "responses", path: "/v1/responses", body: `{"model": "` + modelName + `", "input": "Where?", "max_output_tokens": 3, "temperature": 0}`},
		{name: "responses-stream", path: "/v1/responses", body: `{"model": "` + modelName + `", "input": "Where?", "max_output_tokens": 3, "temperature": 0, "stream": true}`},
		{name: "responses-messages", path: "/v1/responses", body: `{"model": "` + modelName + `", "instructions": "You are brief.", "input": [{"role": "user", "content": [{"type": "input_text", "text": "Where?"}]}], "max_output_tokens": 3, "temperature": 0}`},
		{name: "responses-previous-unknown", path: "/v1/responses", body: `{"model": "` + modelName + `", "input": "Where?", "previous_response_id": "resp_0", "max_output_tokens": 3}`},
		{name: "responses-unknown-model", path: "/v1/responses", body: `{"model": "gpt-none", "input": "Where?"}`},
		{name: "messages", path: "/v1/messages", body: `{"model": "` + modelName + `", "max_tokens": 3, "temperature": 0, "system": "You are brief.", "messages": [{"role": "user", "content": "Where?"}]}`},
		{name: "messages-stream", path: "/v1/messages", body: `{"model": "` + modelName + `", "max_tokens": 3, "temperature": 0, "stream": true, "messages": [{"role": "user", "content": [{"type": "text", "text": "Where?"}]}]}`},
		{name: "messages-unknown-model", path: "/v1/messages", body: `{"model": "gpt-none", "max_tokens": 3, "messages": [{"role": "user", "content": "Where?"}]}`},
		{name: "messages-without-max-tokens", path: "/v1/messages", body: `{"model": "` + modelName + `", "messages": [{"role": "user", "content": "Where?"}]}`},
		{name: "messages-count-tokens", path: "/v1/messages/count_tokens", body: `{"model": "` + modelName + `", "messages": [{"role": "user", "content": "Where?"}]}`},
		{name: "chat-render", path: "/v1/chat/completions/render", body: chat(`"max_tokens": 2`)},
		{name: "completion-render", path: "/v1/completions/render", body: complete(`"max_tokens": 2`)},
		{name: "generate-tokens", path: "/inference/v1/generate", body: `{"model": "` + modelName + `", "token_ids": [60, 61, 62], "sampling_params": {"max_tokens": 2, "temperature": 0}}`},
		{name: "embeddings", path: "/v1/embeddings", body: `{"model": "` + modelName + `", "input": "Where?"}`},
		{name: "score", path: "/score", body: `{"model": "` + modelName + `", "text_1": "a", "text_2": "b"}`},
		{name: "rerank", path: "/v1/rerank", body: `{"model": "` + modelName + `", "query": "a", "documents": ["b"]}`},
		{name: "is-sleeping", path: "/is_sleeping"},
		{name: "sleep", method: "POST", path: "/sleep"},

		{name: "error-no-json", path: chatPath, body: `{"model": `},
		{name: "error-no-object", path: chatPath, body: `[1]`},
		{name: "error-empty-body", method: "POST", path: chatPath, header: []string{"Content-Type: application/json"}},
		{name: "error-no-messages", path: chatPath, body: `{"model": "` + modelName + `"}`},
		{name: "error-empty-messages", path: chatPath, body: body(`"messages": []`, `"max_tokens": 1`)},
		{name: "error-wrong-type", path: chatPath, body: chat(`"max_tokens": "many"`)},
		{name: "error-wrong-types", path: chatPath, body: body(`"messages": "Where?"`, `"max_tokens": "many", "n": "two"`)},
		{name: "error-role", path: chatPath, body: body(`"messages": [{"content": "Where?"}]`, `"max_tokens": 1`)},
		{name: "error-temperature", path: chatPath, body: chat(`"max_tokens": 1, "temperature": -1`)},
		{name: "error-top-p", path: chatPath, body: chat(`"max_tokens": 1, "top_p": 2`)},
		{name: "error-max-tokens-0", path: chatPath, body: chat(`"max_tokens": 0`)},
		{name: "error-max-tokens-negative", path: chatPath, body: chat(`"max_tokens": -1`)},
		{name: "error-n-0", path: chatPath, body: chat(`"max_tokens": 1, "n": 0`)},
		{name: "error-n-greedy", path: chatPath, body: chat(`"max_tokens": 1, "n": 2`)},
		{name: "error-stream-options", path: chatPath, body: chat(`"max_tokens": 1, "stream_options": {"include_usage": true}`)},
		{name: "error-top-logprobs", path: chatPath, body: chat(`"max_tokens": 1, "top_logprobs": 2`)},
		{name: "error-logprobs-many", path: chatPath, body: chat(`"max_tokens": 1, "logprobs": true, "top_logprobs": 100`)},
		{name: "error-tool-choice-without-tools", path: chatPath, body: chat(`"max_tokens": 1, "tool_choice": "required"`)},
		{name: "error-salt-empty", path: chatPath, body: chat(`"max_tokens": 1, "cache_salt": ""`)},
		{name: "error-unknown-model", path: chatPath, body: `{"model": "gpt-none", "messages": [{"role": "user", "content": "Where?"}]}`},
		{name: "error-unknown-model-stream", path: chatPath, body: `{"model": "gpt-none", "messages": [{"role": "user", "content": "Where?"}], "stream": true}`},
		{name: "error-unknown-model-completion", path: completePath, body: `{"model": "gpt-none", "prompt": "Where?"}`},
		{name: "error-too-long", path: chatPath, body: body(`"messages": [{"role": "user", "content": "`+longText+`"}]`, `"max_tokens": 1`)},
		{name: "error-too-long-stream", path: chatPath, body: body(`"messages": [{"role": "user", "content": "`+longText+`"}]`, `"max_tokens": 1, "stream": true`)},
		{name: "error-too-long-reply", path: chatPath, body: chat(`"max_tokens": 100000`)},
		{name: "error-too-long-completion", path: completePath, body: body(`"prompt": [`+strings.TrimSuffix(strings.Repeat("60, ", contextTokens+1), ", ")+`]`, `"max_tokens": 1`)},
		{name: "error-full-context-completion", path: completePath, body: body(`"prompt": [`+strings.TrimSuffix(strings.Repeat("60, ", contextTokens), ", ")+`]`, `"max_tokens": 1`)},
		{name: "error-no-prompt", path: completePath, body: `{"model": "` + modelName + `"}`},
		{name: "error-empty-prompt", path: completePath, body: body(`"prompt": ""`, `"max_tokens": 1`)},
		{name: "error-empty-list-prompt", path: completePath, body: body(`"prompt": []`, `"max_tokens": 1`)},
		{name: "error-token-out-of-vocabulary", path: completePath, body: body(`"prompt": [999999]`, `"max_tokens": 1`)},
		{name: "error-content-type", path: chatPath, header: []string{"Content-Type: text/plain"}, body: chat(`"max_tokens": 1`)},
		{name: "error-content-type-form", path: chatPath, header: []string{"Content-Type: application/x-www-form-urlencoded"}, body: "model=" + modelName},
		{name: "content-type-charset", path: chatPath, header: []string{"Content-Type: application/json; charset=utf-8"}, body: chat(`"max_tokens": 1`)},
		{name: "error-unknown-path", path: "/v1/none"},
		{name: "error-unknown-path-post", path: "/v1/none", body: `{}`},
		{name: "error-method", path: chatPath},
		{name: "error-messages-no-json", path: "/v1/messages", body: `{`},
		{name: "error-responses-no-json", path: "/v1/responses", body: `{`},
		{name: "error-tokenize-unknown-model", path: "/tokenize", body: `{"model": "gpt-none", "prompt": "a"}`},
		{name: "root", path: "/"},
		{name: "openapi-head", method: "HEAD", path: "/health"},
	}
	all = append(append(all, stops()...), odd()...)
	for i := range all {
		all[i].fill()
	}
	return all
}

// stops end a reply by its text and by a token. What a random model says is
// known only when it has said it, so the stop string is a piece of what
// "completion-default-length" answers: see fillStops.
func stops() []exchange {
	return []exchange{
		{name: "completion-stop", path: "/v1/completions", body: complete(`"ignore_eos": true, "stop": ["` + stopMark + `"]`)},
		{name: "completion-stream-stop", path: "/v1/completions", body: complete(`"ignore_eos": true, "stream": true, "stop": "` + stopMark + `"`)},
		{name: "completion-stop-kept", path: "/v1/completions", body: complete(`"ignore_eos": true, "include_stop_str_in_output": true, "stop": ["` + stopMark + `"]`)},
		{name: "completion-stop-token", path: "/v1/completions", body: complete(fmt.Sprintf(`"ignore_eos": true, "stop_token_ids": [%s]`, stopTokenMark))},
	}
}

const (
	stopMark      = "@STOP@"
	stopTokenMark = `"@STOP TOKEN@"`
)
