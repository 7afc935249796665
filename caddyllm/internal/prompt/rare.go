package prompt

// rareField is a member that says how a prompt is to be served. Few requests have
// any: they are looked for where topField saw one, or there is an object of
// parameters, so that the others don't pay for it.
type rareField uint8

const (
	rNone rareField = iota
	rBackground
	rEcho
	rLogprobs
	rReturnLogprob
	rLogprobStart
	rCachePrompt
	rEverywhere // those behind stand among the parameters of sampling too
	rPromptLogprobs
	rSkipReading
	rInputDetails
	nRareFields
)

func rareFieldOf(name []byte) rareField {
	switch string(name) {
	case "background":
		return rBackground
	case "echo":
		return rEcho
	case "logprobs":
		return rLogprobs
	case "return_logprob": // SGLang's generate
		return rReturnLogprob
	case "logprob_start_len":
		return rLogprobStart
	case "cache_prompt": // llama.cpp's
		return rCachePrompt
	case "prompt_logprobs":
		return rPromptLogprobs
	case "skip_reading_prefix_cache": // of vLLM's sampling_params
		return rSkipReading
	case "decoder_input_details": // TGI's
		return rInputDetails
	}
	return rNone
}

// rare reads what few requests have.
func (s *Scanner) rare(p *Prompt) {
	sampling := s.fields[fSampling]
	if s.fields[fRare].to == 0 && s.first(sampling) != '{' {
		return
	}
	var f, parameters [nRareFields]span
	note(&s.lexer, s.root, rareFieldOf, f[:])
	if s.first(sampling) == '{' {
		note(&s.lexer, sampling, rareFieldOf, parameters[:])
		for i := rEverywhere + 1; i < nRareFields; i++ {
			if !s.says(f[i]) {
				f[i] = parameters[i]
			}
		}
	}
	p.Background = s.kind == Responses && s.is(f[rBackground], "true")
	p.Unread, p.Unkept = s.uncached(&f)
}

// uncached reports whether the engine doesn't look for the prompt in its prefix
// cache, and whether it doesn't leave it there either. Blocks that are found have
// no log probabilities, so who wants those of a prompt has all of it computed.
func (s *Scanner) uncached(f *[nRareFields]span) (unread, unkept bool) {
	switch {
	case s.says(f[rSkipReading]): // said outright
		return s.is(f[rSkipReading], "true"), false
	case s.says(f[rPromptLogprobs]): // vLLM; 0 is those of the prompt's own tokens
		return true, false
	case s.is(f[rEcho], "true"):
		// A chat's number of log probabilities is 0 unless it is told, and so asked
		// for; a completion's is null.
		return s.kind == Chat || s.says(f[rLogprobs]), false
	case s.is(f[rReturnLogprob], "true") && s.is(f[rLogprobStart], "0"):
		return true, false // SGLang; from elsewhere it reads what is before
	case s.is(f[rCachePrompt], "false"): // llama.cpp
		return true, false
	}
	unkept = s.is(f[rInputDetails], "true") // TGI
	return unkept, unkept
}
