package recording

// Sequence is a list of completions that are sent one after the other to a
// server whose prefix cache is empty before the first.
type Sequence struct {
	Name string `json:"name"`
	// Blocks is --num-gpu-blocks-override: one more than can be used.
	Blocks int    `json:"blocks"`
	Steps  []Step `json:"steps"`
}

// Step is one completion: what to send and what usage came back.
type Step struct {
	// Prompt is made of runs of token ids, joined.
	Prompt []Run  `json:"prompt"`
	Salt   string `json:"cache_salt,omitempty"`
	// MaxTokens is the length of the reply, which no end token cuts short.
	MaxTokens int `json:"max_tokens"`
	N         int `json:"n,omitempty"`
	// PromptLogprobs asks for them, which needs the whole prompt computed.
	PromptLogprobs bool `json:"prompt_logprobs,omitempty"`

	PromptTokens int `json:"prompt_tokens"`
	ReplyTokens  int `json:"completion_tokens"`
	// CachedTokens is -1 where the server didn't tell.
	CachedTokens int `json:"cached_tokens"`
}

// Run is a piece of a prompt: Count token ids from First on, or the reply of an
// earlier step, counted from 1.
type Run struct {
	First int `json:"first,omitempty"`
	Count int `json:"count,omitempty"`
	Reply int `json:"reply,omitempty"`
}

// Expand gives a step's token ids; replies are those of the steps before.
func (s *Step) Expand(replies [][]int) []int {
	var ids []int
	for _, r := range s.Prompt {
		if r.Reply > 0 {
			ids = append(ids, replies[r.Reply-1]...)
			continue
		}
		for i := range r.Count {
			ids = append(ids, r.First+i)
		}
	}
	return ids
}
