package vllmapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Members that requests may have and that change nothing here. vLLM refuses what
// has another type than its protocol declares, whether it uses it or not.

// declared is such a member.
type declared struct {
	name  string
	check func(f *form, name string)
}

// declaredByAll are those that chats, completions and responses have in common.
var declaredByAll = []declared{
	{"user", wantText}, {"session_id", wantText}, {"priority", wantInt64}, {"seed", wantInt64}, {"logit_bias", wantNumbers},
	{"kv_transfer_params", wantObject}, {"ec_transfer_params", wantObject}, {"vllm_xargs", wantObject},
	{"skip_special_tokens", wantBoolean}, {"watermarking", wantBoolean}, {"return_mm_kwargs", wantBoolean},
}

// declaredByBoth are those of chats and completions.
var declaredByBoth = append(declaredByAll[:len(declaredByAll):len(declaredByAll)], []declared{
	{"use_beam_search", wantBoolean}, {"length_penalty", wantNumber}, {"spaces_between_special_tokens", wantBoolean},
	{"allowed_token_ids", wantIntegers}, {"logprob_token_ids", wantIntegers}, {"bad_words", wantTexts},
	{"return_token_offsets", wantBoolean}, {"stream_interval", wantPositive},
}...)

var declaredByChats = append(declaredByBoth[:len(declaredByBoth):len(declaredByBoth)], []declared{
	{"documents", wantList}, {"chat_template", wantText}, {"add_special_tokens", wantBoolean}, {"return_prompt_text", wantBoolean},
	{"media_io_kwargs", wantObject}, {"mm_processor_kwargs", wantObject},
}...)

var declaredByResponses = append(declaredByAll[:len(declaredByAll):len(declaredByAll)], []declared{
	{"metadata", wantObject}, {"max_tool_calls", wantInteger}, {"include_reasoning", wantBoolean}, {"prompt_cache_key", wantText},
	{"chat_template_kwargs", wantObject}, {"media_io_kwargs", wantObject}, {"mm_processor_kwargs", wantObject}, {"enable_response_messages", wantBoolean},
}...)

var declaredByMessages = []declared{
	{"metadata", wantObject}, {"output_config", wantModel}, {"kv_transfer_params", wantObject}, {"ec_transfer_params", wantObject},
	{"vllm_xargs", wantObject}, {"chat_template_kwargs", wantObject}, {"watermarking", wantBoolean},
}

func (f *form) declare(members []declared) {
	for _, m := range members {
		m.check(f, m.name)
	}
}

func wantText(f *form, name string)    { f.text(name) }
func wantBoolean(f *form, name string) { f.boolean(name, false) }
func wantNumber(f *form, name string)  { f.number(name, 0) }
func wantInteger(f *form, name string) { f.integer(name) }
func wantList(f *form, name string)    { f.list(name) }
func wantModel(f *form, name string)   { f.sub(name) }
func wantObject(f *form, name string)  { f.dict(name) }

func wantInt64(f *form, name string) {
	raw, ok := f.get(name)
	if !ok || !isWhole(raw) {
		f.integer(name)
		return
	}
	const most, least = "9223372036854775807", "-9223372036854775808"
	switch {
	case raw[0] == '-' && further(string(raw), least):
		f.fail("greater_than_equal", name, "Input should be greater than or equal to "+least)
	case raw[0] != '-' && further(string(raw), most):
		f.fail("less_than_equal", name, "Input should be less than or equal to "+most)
	}
}

func wantPositive(f *form, name string) {
	if v, ok := f.integer(name); ok && v < 1 {
		f.fail("greater_than_equal", name, "Input should be greater than or equal to 1")
	}
}

func wantIntegers(f *form, name string) {
	items, _ := f.list(name)
	for i, raw := range items {
		if kind, msg := lacksInteger(raw); kind != "" {
			f.invalid(kind, item(f.at(name), i), msg, raw)
		}
	}
}

func wantTexts(f *form, name string) {
	items, _ := f.list(name)
	for i, raw := range items {
		if raw[0] != '"' {
			f.invalid("string_type", item(f.at(name), i), "Input should be a valid string", raw)
		}
	}
}

func wantNumbers(f *form, name string) {
	if numbers, ok := f.dict(name); ok {
		for _, m := range numbers.members {
			numbers.number(m.name, 0)
		}
	}
}

// lacksInteger is what pydantic says of a value that is no whole number.
func lacksInteger(raw json.RawMessage) (kind, msg string) {
	if _, ok := wholeNumber(raw); ok || isWhole(raw) {
		return "", ""
	}
	switch {
	case raw[0] == '"':
		return "int_parsing", "Input should be a valid integer, unable to parse string as an integer"
	case raw[0] >= '0' && raw[0] <= '9' || raw[0] == '-':
		return "int_from_float", "Input should be a valid integer, got a number with a fractional part"
	}
	return "int_type", "Input should be a valid integer"
}

// refuseForeign refuses ids of tokens that the model doesn't have, and what a
// server doesn't do unless it is told to.
func (g *generation) refuseForeign(f *form) {
	g.refuseBias(f)
	if ids, ok := f.list("allowed_token_ids"); ok {
		if len(ids) == 0 {
			g.refuseLate(refuseValue("allowed_token_ids", "[]", "allowed_token_ids is not None and empty!"))
		} else if foreign := foreignIDs(ids); foreign != "" {
			g.refuseLate(refuseValue("allowed_token_ids", foreign, "allowed_token_ids contains out-of-vocab token id!"))
		}
	}
	if kwargs, ok := f.dict("mm_processor_kwargs"); ok && len(kwargs.members) > 0 {
		f.adopt(refuseParam("mm_processor_kwargs", "Per-request mm_processor_kwargs are disabled by default because they can change multimodal preprocessing "+
			"resource usage. Start the server with --trust-request-mm-kwargs only when clients are trusted."))
	}
	if text, _ := f.text("chat_template"); text != "" && !g.ignoresN {
		g.refuseLate(refuse("", "Chat template is passed with request, but --trust-request-chat-template is not set. Refused request with untrusted chat template."))
	}
}

func (g *generation) refuseBias(f *form) {
	bias, ok := f.dict("logit_bias")
	if !ok {
		return
	}
	var words []string
	var ids []json.RawMessage
	for _, m := range bias.members {
		if raw := json.RawMessage(m.name); m.name != "" && m.name != "-" && isWhole(raw) {
			ids = append(ids, raw)
		} else {
			words = append(words, pyString(m.name))
		}
	}
	if len(words) > 0 {
		list := "[" + strings.Join(words, ", ") + "]"
		g.refuseLate(refuseValue("logit_bias", list, "logit_bias contains key(s) that cannot be converted to integer token IDs: %s", list))
	}
	g.refuseIDs("logit_bias", ids)
}

// refuseIDs refuses those of a list of ids that no token has.
func (g *generation) refuseIDs(name string, ids []json.RawMessage) {
	if foreign := foreignIDs(ids); foreign != "" {
		g.refuseLate(refuseValue(name, foreign, "token_id(s) %s in %s contain out-of-vocab token ids. Vocabulary size: %d", foreign, name, vocabulary))
	}
}

// foreignIDs lists, as Python does, the ids that no token has; empty if all are
// some token's.
func foreignIDs(ids []json.RawMessage) string {
	var foreign []string
	for _, raw := range ids {
		n, err := strconv.ParseUint(string(raw), 10, 64)
		if _, ok := tokenOf(n); (err != nil || !ok) && isWhole(raw) && !slices.Contains(foreign, string(raw)) {
			foreign = append(foreign, string(raw))
		}
	}
	if foreign == nil {
		return ""
	}
	return "[" + strings.Join(foreign, ", ") + "]"
}
