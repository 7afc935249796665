package vllmapi

import "net/http"

// api is one of the ways to ask for tokens. They share everything but how a
// request reads and how its answer looks.
type api struct {
	read   func(*Server, *form, http.Header) *generation
	render func(*job) renderer
	prefix string   // of an answer's id
	order  []string // of members in the protocol, by which errors are told
}

var (
	chatAPI = &api{readChat, func(j *job) renderer { return &chatRenderer{j: j} }, "chatcmpl-", []string{
		"messages", "model", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "max_tokens", "max_completion_tokens", "n",
		"presence_penalty", "response_format", "seed", "stop", "stream", "stream_options", "temperature", "top_p", "tools", "tool_choice",
		"reasoning_effort", "thinking_token_budget", "include_reasoning", "parallel_tool_calls", "user", "top_k", "min_p", "repetition_penalty",
		"stop_token_ids", "include_stop_str_in_output", "ignore_eos", "min_tokens", "truncate_prompt_tokens", "truncation_side", "prompt_logprobs",
		"echo", "add_generation_prompt", "continue_final_message", "chat_template_kwargs", "priority", "request_id",
	}}
	textAPI = &api{readCompletion, func(j *job) renderer { return &textRenderer{j: j} }, "cmpl-", []string{
		"model", "prompt", "echo", "frequency_penalty", "logit_bias", "logprobs", "max_tokens", "n", "presence_penalty", "seed", "stop", "stream",
		"stream_options", "suffix", "temperature", "top_p", "user", "top_k", "min_p", "repetition_penalty", "stop_token_ids",
		"include_stop_str_in_output", "ignore_eos", "min_tokens", "truncate_prompt_tokens", "truncation_side", "prompt_logprobs",
		"add_special_tokens", "priority", "request_id",
	}}
	// vLLM makes chats of both, and the id tells of that.
	messagesAPI = &api{readMessages, func(j *job) renderer { return &messagesRenderer{j: j} }, "chatcmpl-", []string{
		"model", "messages", "max_tokens", "metadata", "stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
	}}
	responsesAPI = &api{readResponses, func(j *job) renderer { return &responsesRenderer{j: j} }, "resp_", []string{
		"background", "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "parallel_tool_calls",
		"previous_response_id", "prompt", "reasoning", "service_tier", "store", "stream", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
	}}
)

func (s *Server) chatCompletions(x *exchange) { s.generate(x, chatAPI) }
func (s *Server) completions(x *exchange)     { s.generate(x, textAPI) }
func (s *Server) responses(x *exchange)       { s.generate(x, responsesAPI) }

// invocations is SageMaker's way to ask for either.
func (s *Server) invocations(x *exchange) { s.generate(x, nil) }

func (s *Server) messages(x *exchange) {
	x.anthropic = true
	s.generate(x, messagesAPI)
}
