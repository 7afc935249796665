package prompt

// uncached reports whether the engine doesn't look for the prompt in its prefix
// cache, and whether it doesn't leave it there either. Blocks that are found have
// no log probabilities, so who wants those of a prompt has all of it computed.
func (s *Scanner) uncached() (unread, unkept bool) {
	if v := s.sampled(fSkipReading); s.says(v) { // said outright
		return s.is(v, "true"), false
	}
	f := &s.fields
	switch {
	case s.says(s.sampled(fPromptLogprobs)): // vLLM; 0 is those of the tokens themselves
		return true, false
	case s.is(f[fEcho], "true"):
		// A chat's number of log probabilities is 0 unless it is told, and so asked
		// for; a completion's is null.
		return s.kind == Chat || s.says(f[fLogprobs]), false
	case s.is(f[fReturnLogprob], "true") && s.is(f[fLogprobStart], "0"):
		return true, false // SGLang; from elsewhere it reads what is before
	case s.is(f[fCachePrompt], "false"): // llama.cpp
		return true, false
	}
	unkept = s.is(s.sampled(fInputDetails), "true") // TGI
	return unkept, unkept
}
