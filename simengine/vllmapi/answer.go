package vllmapi

// fingerprintName stands for the system's in answers.
const fingerprintName = "vllmsim"

// usage counts tokens. Its members have the order of vLLM's.
type usage struct {
	PromptTokens     int            `json:"prompt_tokens"`
	TotalTokens      int            `json:"total_tokens"`
	CompletionTokens int            `json:"completion_tokens"`
	Details          *promptDetails `json:"prompt_tokens_details"`
}

// streamUsage is usage as streams have it: without what is null.
type streamUsage struct {
	PromptTokens     int            `json:"prompt_tokens"`
	TotalTokens      int            `json:"total_tokens"`
	CompletionTokens int            `json:"completion_tokens"`
	Details          *promptDetails `json:"prompt_tokens_details,omitempty"`
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

func (j *job) usage() usage {
	u := usage{PromptTokens: j.promptTokens, CompletionTokens: j.generated, TotalTokens: j.promptTokens + j.generated}
	if j.details {
		u.Details = &promptDetails{j.cached()}
	}
	return u
}

// chunk is an event of a stream.
type chunk struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	Model       string       `json:"model"`
	Choices     []any        `json:"choices"`
	Fingerprint string       `json:"system_fingerprint,omitempty"`
	Usage       *streamUsage `json:"usage,omitempty"`
}

// ending is what the last chunk of a choice has more than the others.
type ending struct {
	StopReason any `json:"stop_reason"`
}

type chatDelta struct {
	Index    int       `json:"index"`
	Delta    deltaText `json:"delta"`
	Logprobs *struct{} `json:"logprobs"`
	Finish   *string   `json:"finish_reason"`
	*ending
}

type deltaText struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content"`
}

type textDelta struct {
	Index    int       `json:"index"`
	Text     string    `json:"text"`
	Logprobs *struct{} `json:"logprobs"`
	Finish   *string   `json:"finish_reason"`
	*ending
}

// answer is a whole answer.
type answer struct {
	ID          string  `json:"id"`
	Object      string  `json:"object"`
	Created     int64   `json:"created"`
	Model       string  `json:"model"`
	Choices     []any   `json:"choices"`
	ServiceTier *string `json:"service_tier"`
	Fingerprint string  `json:"system_fingerprint"`
	Usage       usage   `json:"usage"`
}

type chatChoice struct {
	Index      int         `json:"index"`
	Message    chatMessage `json:"message"`
	Logprobs   *struct{}   `json:"logprobs"`
	Finish     string      `json:"finish_reason"`
	StopReason any         `json:"stop_reason"`
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   string     `json:"content"`
	Refusal   *string    `json:"refusal"`
	ToolCalls []struct{} `json:"tool_calls"`
	Reasoning *string    `json:"reasoning"`
}

type textChoice struct {
	Index      int       `json:"index"`
	Text       string    `json:"text"`
	Logprobs   *struct{} `json:"logprobs"`
	Finish     string    `json:"finish_reason"`
	StopReason any       `json:"stop_reason"`
}
