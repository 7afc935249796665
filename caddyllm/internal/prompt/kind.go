package prompt

import "strings"

// Kind is what a request's path says of the shape of its body.
type Kind uint8

// The kinds of requests.
const (
	None        Kind = iota // no path of a prompt
	Chat                    // OpenAI's chat completions
	Completions             // OpenAI's completions
	Responses               // OpenAI's responses
	Messages                // Anthropic's messages
	Embeddings              // OpenAI's embeddings; vLLM's pooling
	Rerank                  // a query and documents, after Jina and Cohere
	Score                   // vLLM's pairs of texts
	Classify                // vLLM's classification
	Tokenize                // a prompt or messages that are only counted
	Generate                // SGLang's, TGI's and vLLM's own generation
)

var kinds = [...]struct {
	suffix string
	kind   Kind
}{
	{"/chat/completions", Chat},
	{"/completions", Completions},
	{"/responses", Responses},
	{"/messages", Messages},
	{"/messages/count_tokens", Tokenize},
	{"/embeddings", Embeddings},
	{"/pooling", Embeddings},
	{"/rerank", Rerank},
	{"/score", Score},
	{"/classify", Classify},
	{"/tokenize", Tokenize},
	{"/generate", Generate},
	{"/generate_stream", Generate},
}

// KindOf recognises a request by the end of its path, so that gateways may put
// their own prefix in front. One trailing slash is no difference: engines
// redirect it to the path without.
func KindOf(path string) Kind {
	path = strings.TrimSuffix(path, "/")
	for _, k := range kinds {
		if strings.HasSuffix(path, k.suffix) {
			return k.kind
		}
	}
	return None
}

// Generates reports whether a request of this kind has the engine generate
// text, and so leaves its prompt in the cache of KV blocks.
func (k Kind) Generates() bool {
	switch k {
	case Chat, Completions, Responses, Messages, Generate:
		return true
	}
	return false
}

// String is the kind's name in lower case.
func (k Kind) String() string {
	names := [...]string{"none", "chat", "completions", "responses", "messages",
		"embeddings", "rerank", "score", "classify", "tokenize", "generate"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}
