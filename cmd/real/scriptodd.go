package main

import (
	"fmt"
	"strings"
)

// odd are requests that clients send by mistake, or hardly ever: what each gets
// told, and in what shape.
func odd() []exchange {
	const (
		chatPath     = "/v1/chat/completions"
		completePath = "/v1/completions"
		anthropic    = `"model": "` + modelName + `", "messages": [{"role": "user", "content": "Where?"}], "max_tokens": 2, "temperature": 0`
		responses    = `"model": "` + modelName + `", "input": "Where?", "max_output_tokens": 2, "temperature": 0`
		function     = `{"type": "function", "name": "find", "description": "Finds.", "parameters": {"type": "object", "properties": {}}, "strict": true}`
	)
	var all []exchange
	add := func(name, path, body string) {
		all = append(all, exchange{name: "odd-" + name, path: path, body: body})
	}
	each := func(prefix, path string, body func(string) string, members ...string) {
		for i, m := range members {
			add(fmt.Sprintf("%s-%02d", prefix, i+1), path, body(m))
		}
	}
	each("chat", chatPath, func(m string) string { return chat(`"max_tokens": 2, ` + m) },
		`"seed": 9223372036854775808`, `"n": 16385, "temperature": 1`, `"n": 129`, `"stop": ["a", "b", "c", "d", "e"]`, `"stop": [1]`, `"stop": 5`,
		`"stop_token_ids": ["a"]`, `"stop_token_ids": [1.5]`, `"logit_bias": {"a": 1}`, `"logit_bias": 5`, `"logit_bias": {"5": "x"}`,
		`"allowed_token_ids": []`, `"allowed_token_ids": ["a"]`, `"user": 5`, `"documents": 5`, `"bad_words": "x"`, `"bad_words": [1]`,
		`"skip_special_tokens": "x"`, `"vllm_xargs": 5`, `"stream_interval": 0`, `"chat_template": "x"`, `"mm_processor_kwargs": {"a": 1}`,
		`"chat_template_kwargs": 5`, `"reasoning_effort": 5`, `"thinking_token_budget": "x"`, `"thinking_token_budget": 5`,
		`"continue_final_message": true`, `"continue_final_message": true, "add_generation_prompt": true`, `"priority": 1099511627776`,
		`"response_format": {"type": "weird"}`, `"response_format": {}`, `"response_format": "x"`, `"response_format": {"type": "structural_tag"}`,
		`"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}`,
		`"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": 5}}`,
		`"structured_outputs": {"choice": []}`, `"structured_outputs": {"structural_tag": "{}"}`,
		`"tools": [{"type": "x", "function": {"name": "a"}}]`, `"tools": [{"type": "function", "function": {"name": "a", "parameters": 5}}]`, `"tools": [5]`,
	)
	each("messages", chatPath, func(m string) string { return body(`"messages": `+m, `"max_tokens": 2`) },
		`[{"role": "user", "content": null}]`, `[{"role": "user", "content": 5}]`, `[{"role": "user", "content": "a", "name": 5}]`, `[5]`, `[null]`, `[{}]`,
		`[{"role": "assistant", "tool_calls": "x"}]`, `[{"role": "assistant", "tool_calls": [7]}]`,
		`[{"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f"}}]}]`,
		`[{"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]}]`,
	)
	each("completion", completePath, func(m string) string { return complete(`"max_tokens": 2, ` + m) },
		`"suffix": "x"`, `"suffix": ""`, `"logprobs": true`, `"prompt_embeds": "AAAA"`, `"prompt_embeds": 5`, `"user": 5`,
	)
	each("anthropic", "/v1/messages", func(m string) string { return "{" + anthropic + ", " + m + "}" },
		`"max_tokens": 0`, `"max_tokens": 1000000`, `"model": ""`, `"messages": []`, `"messages": [{"role": "user", "content": [{"type": "zz"}]}]`,
		`"messages": [{"role": "user", "content": 5}]`, `"messages": [{"role": "user", "content": [{"type": "text"}]}]`, `"system": 5`, `"stop_sequences": "x"`,
		`"metadata": 5`, `"tool_choice": {"type": "any"}`, `"tool_choice": "auto"`, `"thinking": {"type": "enabled", "budget_tokens": 1024}`, `"thinking": 5`,
		`"cache_salt": ""`, `"tools": [{"name": "find", "input_schema": {"type": "object"}}], "tool_choice": {"type": "tool", "name": "zz"}`,
		`"tools": [{"name": "find", "input_schema": {"type": "object"}}], "tool_choice": {"type": "tool"}`,
	)
	each("responses", "/v1/responses", func(m string) string { return "{" + responses + ", " + m + "}" },
		`"input": []`, `"input": 5`, `"metadata": 5`, `"include": ["zz"]`, `"include": ["message.output_text.logprobs"], "top_logprobs": 2`,
		`"include": ["message.output_text.logprobs"], "top_logprobs": 2, "stream": true`, `"truncation": "zz"`, `"background": true`,
		`"background": true, "store": false`, `"max_tool_calls": "x"`, `"reasoning": {"effort": "low"}`, `"reasoning": {"effort": "zz"}`, `"reasoning": 5`,
		`"text": {"verbosity": "low"}`, `"text": {"format": {"type": "zz"}}`, `"text": {"format": {"type": "json_schema", "name": "a", "schema": 5}}`,
		`"text": {"format": {"type": "text"}}`, `"text": 5`, `"tool_choice": "auto"`, `"tool_choice": "zz"`, `"tool_choice": {"type": "zz"}`,
		`"tools": [`+function+`], "tool_choice": "none"`, `"tools": [`+function+`], "tool_choice": {"type": "function"}`, `"tools": [{"type": "web_search"}]`,
		`"presence_penalty": 3`, `"user": 5`, `"n": 2`,
	)
	each("tokenize", "/tokenize", func(m string) string { return "{" + m + "}" }, ``, `"prompt": 5`, `"prompt": null`, `"messages": "x"`, `"messages": []`)
	each("detokenize", "/detokenize", func(m string) string { return `{"tokens": ` + m + "}" }, `["a"]`, `[1.5]`, `[-1]`, `5`)
	add("invocations", "/invocations", chat(`"max_tokens": 2`))
	add("invocations-prompt", "/invocations", complete(`"max_tokens": 2`))
	add("count-tokens-empty", "/v1/messages/count_tokens", `{"model": "`+modelName+`", "messages": []}`)
	add("deep", chatPath, `{"a":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+"}")
	add("long-number", chatPath, `{"a":`+strings.Repeat("9", 5000)+"}")

	asks := func(name, method, path string, header ...string) {
		all = append(all, exchange{name: "odd-" + name, method: method, path: path, header: header})
	}
	asks("slash", "GET", "/v1/models/")
	asks("slash-post", "POST", "/v1/chat/completions/")
	asks("ping-put", "PUT", "/ping")
	const origin = "Origin: http://example.com"
	asks("preflight", "OPTIONS", chatPath, origin, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type,authorization")
	asks("preflight-method", "OPTIONS", "/none", origin, "Access-Control-Request-Method: TEAPOT")
	asks("origin", "GET", "/version", origin)
	return all
}
