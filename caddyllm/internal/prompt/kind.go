package prompt

import "strings"

// Kind is what a request's path says of the shape of its body.
type Kind uint8

// The kinds of requests.
const (
	None        Kind = iota // no path of a prompt
	Chat                    // OpenAI's chat completions; vLLM's batches of them
	Completions             // OpenAI's completions
	Responses               // OpenAI's responses
	Messages                // Anthropic's messages
	Embeddings              // OpenAI's and Cohere's embeddings; vLLM's pooling
	Rerank                  // a query and documents, after Jina and Cohere
	Score                   // vLLM's pairs of texts
	Classify                // vLLM's classification
	Tokenize                // a prompt or messages that are only counted or rendered
	Generate                // SGLang's, TGI's and vLLM's own generation
	Invocations             // SageMaker's one path for all of these
	Audio                   // OpenAI's transcriptions and translations
	Root                    // TGI's generation, for clients that are told an address alone
)

var kinds = [...]struct {
	suffix string
	kind   Kind
}{
	{"/chat/completions", Chat},
	{"/chat/completions/batch", Chat},
	{"/chat/completions/render", Tokenize},
	{"/v2/chat", Chat},
	{"/api/chat", Chat}, // Ollama's; its /api/generate is below
	{"/completions", Completions},
	{"/completion", Completions},
	{"/infill", Completions}, // llama.cpp's: other files, what stands before the gap, and behind it
	{"/completions/render", Tokenize},
	{"/responses", Responses},
	{"/messages", Messages},
	{"/messages/count_tokens", Tokenize},
	{"/embeddings", Embeddings},
	{"/embed", Embeddings},
	{"/embedding", Embeddings}, // llama.cpp's
	{"/pooling", Embeddings},
	{"/rerank", Rerank},
	{"/reranking", Rerank},
	{"/score", Score},
	{"/generative_scoring", Score},
	{"/classify", Classify},
	{"/tokenize", Tokenize},
	{"/generate", Generate},
	{"/generate_stream", Generate},
	{"/invocations", Invocations},
	{"/audio/transcriptions", Audio},
	{"/audio/translations", Audio},
}

// KindOf recognises a request by the end of its path, so that gateways may put
// their own prefix in front. One trailing slash is no difference: engines
// redirect it to the path without.
func KindOf(path string) Kind {
	kind, _ := kindOf(path)
	return kind
}

func kindOf(path string) (kind Kind, before string) {
	path = strings.TrimSuffix(path, "/")
	if path == "" {
		return Root, ""
	}
	for i := range kinds {
		if k := &kinds[i]; strings.HasSuffix(path, k.suffix) {
			return k.kind, path[:len(path)-len(k.suffix)]
		}
	}
	return None, ""
}

// ModelOf is the model that a path names, empty if it names none: Triton's
// /v2/models/NAME/generate, with a version or without, and Azure's
// /openai/deployments/NAME/chat/completions.
func ModelOf(path string) string {
	_, before := kindOf(path)
	for _, of := range [...]string{"/models/", "/deployments/"} {
		if _, name, ok := strings.Cut(before, of); ok {
			return name
		}
	}
	return ""
}

// Streams reports whether a path asks for the answer in pieces: TGI has one of its
// own for that, whatever the body says, and Ollama sends pieces unless the body asks
// for the whole.
func Streams(path string, whole bool) bool {
	path = strings.TrimSuffix(path, "/")
	if strings.HasSuffix(path, "/generate_stream") {
		return true
	}
	return !whole && (strings.HasSuffix(path, "/api/chat") || strings.HasSuffix(path, "/api/generate"))
}

// Generates reports whether a request of this kind has the engine generate
// text, and so leaves its prompt in the cache of KV blocks.
func (k Kind) Generates() bool {
	switch k {
	case Chat, Completions, Responses, Messages, Generate, Root:
		return true
	}
	return false
}

// String is the kind's name in lower case.
func (k Kind) String() string {
	names := [...]string{"none", "chat", "completions", "responses", "messages",
		"embeddings", "rerank", "score", "classify", "tokenize", "generate", "invocations", "audio", "root"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}
