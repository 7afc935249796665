package prompt

import "testing"

func TestKindIsRecognisedByTheEndOfThePath(t *testing.T) {
	for path, want := range map[string]Kind{
		"/v1/chat/completions":                   Chat,
		"/llm/v1/chat/completions":               Chat,
		"/v1/chat/completions/":                  Chat,
		"/openai/deployments/x/chat/completions": Chat,
		"/v1/completions":                        Completions,
		"/infill":                                Completions,
		"/v2/models/ensemble/generate":           Generate,
		"/v1/responses":                          Responses,
		"/anthropic/v1/messages":                 Messages,
		"/v1/messages/count_tokens":              Tokenize,
		"/v1/embeddings":                         Embeddings,
		"/pooling":                               Embeddings,
		"/v2/rerank":                             Rerank,
		"/score":                                 Score,
		"/classify":                              Classify,
		"/tokenize":                              Tokenize,
		"/generate":                              Generate,
		"/inference/v1/generate":                 Generate,
		"/v1/responses/resp_1/cancel":            None,
		"/v1/models":                             None,
		"/mycompletions":                         None,
		"/detokenize":                            None,
		"/v1/audio/transcriptions":               Audio,
		"/v1/audio/translations":                 Audio,
		"/v1/chat/completions/batch":             Chat,
		"/v1/chat/completions/render":            Tokenize,
		"/v1/completions/render":                 Tokenize,
		"/v1/chat/completions/derender":          None,
		"/cohere/v2/chat":                        Chat,
		"/v2/embed":                              Embeddings,
		"/generative_scoring":                    Score,
		"/invocations":                           Invocations,
		"completions":                            None,
		"/":                                      Root,
		"":                                       Root,
		"//":                                     None,
	} {
		if got := KindOf(path); got != want {
			t.Errorf("KindOf(%q) = %v, want %v", path, got, want)
		}
	}
}

// A model that stands in the path belongs to the key as one in the body does.
func TestFC25AModelInThePathIsTheModel(t *testing.T) {
	for path, want := range map[string]string{
		"/v2/models/ensemble/generate":               "ensemble",
		"/v2/models/ensemble/generate_stream/":       "ensemble",
		"/v2/models/ensemble/versions/2/generate":    "ensemble/versions/2",
		"/triton/v2/models/a/generate":               "a",
		"/openai/deployments/gpt-x/chat/completions": "gpt-x",
		"/models/chat/completions":                   "",
		"/v1/chat/completions":                       "",
		"/v2/models/ensemble/infer":                  "",
		"/":                                          "",
	} {
		if got := ModelOf(path); got != want {
			t.Errorf("ModelOf(%q) = %q, want %q", path, got, want)
		}
	}
	scan := func(model, body string) keyed {
		s := Scanner{PathModel: model}
		p, status := s.Scan(Generate, []byte(body), true, block)
		if status != OK {
			t.Fatalf("status %d", status)
		}
		return keyedBy(&s, p)
	}
	text := `"text_input":` + quoted(words(1, 500)) + `}`
	inPath, inBody := scan("a", `{`+text), scan("", `{"model":"a",`+text)
	if !samePrompt(inPath, inBody) {
		t.Errorf("model in the path: %+v; in the body: %+v", inPath, inBody)
	}
	if other := scan("b", `{`+text); other.whole == inPath.whole || other.Model == inPath.Model {
		t.Error("two models by path have one key")
	}
	if both := scan("b", `{"model":"a",`+text); !samePrompt(both, inBody) {
		t.Errorf("the body's model doesn't count before the path's: %+v", both)
	}
}

func TestAPathMayAskForAStream(t *testing.T) {
	for path, want := range map[string][2]bool{ // by itself, and where the body asks for the whole
		"/generate_stream": {true, true}, "/tgi/generate_stream/": {true, true},
		"/api/chat": {true, false}, "/ollama/api/generate": {true, false},
		"/generate": {}, "/v1/chat/completions": {}, "/v2/chat": {}, "": {},
	} {
		if got := [2]bool{Streams(path, false), Streams(path, true)}; got != want {
			t.Errorf("Streams(%q) = %v, want %v", path, got, want)
		}
	}
	for body, want := range map[string][2]bool{`"stream":true`: {true, false}, `"stream":false`: {false, true}, `"stream":null`: {}, `"n":1`: {}} {
		p := scanned(t, Chat, `{"messages":[{"role":"user","content":"a"}],`+body+`}`)
		if got := [2]bool{p.Stream, p.Whole}; got != want {
			t.Errorf("%s: stream and whole are %v, want %v", body, got, want)
		}
	}
}
