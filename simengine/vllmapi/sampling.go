package vllmapi

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// readSampling checks what shapes the choice of tokens. Of it all, only n and
// seed matter to a simulator.
func (g *generation) readSampling(f *form) {
	if f.has("n") && !g.ignoresN {
		g.n = f.count("n", 1)
	}
	if g.n < 1 {
		g.refuseLate(refuse("", "n must be at least 1, got %d.", g.n))
	}
	if g.n > vllmChoices {
		g.refuseLate(refuse("", "n must be at most %d, got %d. To increase this limit, set the VLLM_MAX_N_SEQUENCES environment variable.", vllmChoices, g.n))
	}
	for _, name := range []string{"presence_penalty", "frequency_penalty"} {
		if v := f.number(name, 0); !(v >= -2 && v <= 2) {
			g.refuseLate(refuse("", "%s must be in [-2, 2], got %s.", name, pyFloat(v)))
		}
	}
	if v := f.number("repetition_penalty", 1); math.IsNaN(v) || math.IsInf(v, 0) {
		g.refuseLate(refuse("", "repetition_penalty must be a finite number, got %s.", pyFloat(v)))
	} else if v <= 0 {
		g.refuseLate(refuse("", "repetition_penalty must be greater than zero, got %s.", pyFloat(v)))
	}
	g.readTemperature(f)
	if v := f.number("top_p", 1); !(v > 0 && v <= 1) {
		g.refuseLate(refuseValue("top_p", pyFloat(v), "top_p must be in (0, 1], got %s.", pyFloat(v)))
	}
	if v := f.count("top_k", 0); v < -1 {
		g.refuseLate(refuse("", "top_k must be 0 (disable), or at least 1, got %d.", v))
	}
	if v := f.number("min_p", 0); !(v >= 0 && v <= 1) {
		g.refuseLate(refuse("", "min_p must be in [0, 1], got %s.", pyFloat(v)))
	}
	if v, ok := f.integer("seed"); ok {
		g.seed, g.seeded = uint64(v), true
	}
}

func (g *generation) readTemperature(f *form) {
	v := f.number("temperature", 1)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		g.refuseLate(refuseValue("temperature", pyFloat(v), "temperature must be a finite number, got %s.", pyFloat(v)))
	case v < 0:
		g.refuseLate(refuseValue("temperature", pyFloat(v), "temperature must be non-negative, got %s.", pyFloat(v)))
	case v > 2:
		g.refuseLate(refuseValue("temperature", pyFloat(v), "temperature must be in [0, 2], got %s.", pyFloat(v)))
	}
	const greedy = 1e-5
	if v < greedy && g.n > 1 {
		g.refuseLate(refuse("", "n must be 1 when using greedy sampling, got %d.", g.n))
	}
	if g.n > maxChoices {
		g.refuseLate(refuse("", "n must be at most %d, got %d.", maxChoices, g.n))
	}
}

// pyFloat writes a number as Python does.
func pyFloat(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64)), "+")
	case v == math.Trunc(v) && math.Abs(v) < 1e16:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// readMaxTokens reads the reply's bound from the first of names that is given.
func (g *generation) readMaxTokens(f *form, names ...string) {
	for _, name := range names {
		if !f.has(name) {
			continue
		}
		g.maxTokens, g.maxName = f.count(name, 0), name
		if g.maxTokens < 1 {
			g.refuseLate(refuseValue("max_tokens", g.maxTokens, "max_tokens must be at least 1, got %d.", g.maxTokens))
		}
		return
	}
}

// readLimits reads what else ends a reply.
func (g *generation) readLimits(f *form) {
	g.limits.minTokens = f.count("min_tokens", 0)
	if g.limits.minTokens < 0 {
		g.refuseLate(refuse("", "min_tokens must be greater than or equal to 0, got %d.", g.limits.minTokens))
	}
	if g.maxTokens > 0 && g.limits.minTokens > g.maxTokens {
		g.refuseLate(refuse("", "min_tokens must be less than or equal to max_tokens=%d, got %d.", g.maxTokens, g.limits.minTokens))
	}
	g.limits.ignoreEOS = f.boolean("ignore_eos", false)
	g.limits.keepStop = f.boolean("include_stop_str_in_output", false)
	g.readStops(f, "stop", true)
	wantIntegers(f, "stop_token_ids")
	if ids, _ := f.list("stop_token_ids"); !f.failed() && len(ids) > 0 {
		g.refuseIDs("stop_token_ids", ids)
		tokens, _ := tokenIDs(f, "stop_token_ids", ids)
		g.limits.stopTokens = make(map[token]struct{}, len(tokens))
		for _, t := range tokens {
			g.limits.stopTokens[t] = struct{}{}
		}
	}
}

// readStops reads stop strings: a text, where single says that it may be one, or a
// list.
func (g *generation) readStops(f *form, name string, single bool) {
	raw, ok := f.get(name)
	if !ok {
		return
	}
	items, ok := scanList(raw)
	kinds := []invalid{noList}
	if single {
		kinds = []invalid{noText, noList}
	}
	switch {
	case raw[0] == '"' && single:
		items = []json.RawMessage{raw}
	case !ok:
		f.either(name, raw, kinds...)
	case len(items) > maxStops:
		long := invalid{kind: "too_long", msg: "List should have at most " + strconv.Itoa(maxStops) + " items after validation, not " + strconv.Itoa(len(items))}
		f.either(name, raw, append(kinds[:len(kinds)-1], long)...)
		return
	}
	for i, raw := range items {
		if raw[0] != '"' {
			list, _ := f.get(name)
			f.either(name, list, kinds[:len(kinds)-1]...)
			f.invalid(noText.kind, item(f.at(name), i), noText.msg, raw)
			continue
		}
		s := unquote(raw)
		if s == "" {
			g.refuseLate(refuse("", "stop cannot contain an empty string."))
		}
		if len(s) > maxStopBytes {
			g.refuseLate(refuse("stop", "stop strings must have at most %d bytes.", maxStopBytes))
		}
		g.limits.stop = append(g.limits.stop, s)
	}
}

// readLogprobs reads how many log probabilities go with each token: chats have
// a switch and a number, completions a number only.
func (g *generation) readLogprobs(f *form, chat bool) {
	name, wanted := "logprobs", f.has("logprobs")
	if chat {
		name, wanted = "top_logprobs", f.boolean("logprobs", false)
	}
	for _, name := range []string{"prompt_logprobs", name} {
		if raw, ok := f.get(name); ok && raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') && raw[0] != 't' && raw[0] != 'f' {
			f.adopt(refuseValue(name, shownInput(raw), "`%s` must be an integer.", name))
			return
		}
	}
	top := f.count(name, 0)
	switch {
	case top < -1:
		f.adopt(refuseValue(name, top, "`%s` must be a positive value or -1.", name))
	case chat && top != 0 && !wanted:
		f.adopt(refuseParam(name, "when using `top_logprobs`, `logprobs` must be set to true."))
	case wanted:
		g.logprobs = top
	}
	if f.has("prompt_logprobs") {
		g.promptLogprobs = f.count("prompt_logprobs", 0)
		if g.stream && (g.promptLogprobs > 0 || g.promptLogprobs == -1) {
			f.adopt(refuseParam("prompt_logprobs", "`prompt_logprobs` are not available when `stream=True`."))
		}
		if g.promptLogprobs < -1 {
			f.adopt(refuseValue("prompt_logprobs", g.promptLogprobs, "`prompt_logprobs` must be a positive value or -1."))
		}
	}
	if g.promptLogprobs == none && g.echo && (chat || g.logprobs != none) {
		g.promptLogprobs = top
	}
	g.boundLogprobs("sample", "logprobs", g.logprobs)
	g.boundLogprobs("prompt", "prompt_logprobs", g.promptLogprobs)
}

func (g *generation) boundLogprobs(kind, name string, n int) {
	if n == -1 {
		n = vocabulary
	}
	if n > maxLogprobs {
		g.refuseLate(refuseValue(name, n, "Requested %s logprobs of %d, which is greater than max allowed: %d", kind, n, maxLogprobs))
	}
}
