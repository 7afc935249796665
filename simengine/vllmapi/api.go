package vllmapi

import "net/http"

// api is one of the ways to ask for tokens. They share everything but how a
// request reads and how its answer looks.
type api struct {
	read   func(*Server, *form, http.Header) *generation
	render func(*job) renderer
	prefix string // of an answer's id
}

var (
	chatAPI = &api{readChat, func(j *job) renderer { return &chatRenderer{j: j} }, "chatcmpl-"}
	textAPI = &api{readCompletion, func(j *job) renderer { return &textRenderer{j: j} }, "cmpl-"}
	// vLLM makes chats of both, and the id tells of that.
	messagesAPI  = &api{readMessages, func(j *job) renderer { return &messagesRenderer{j: j} }, "chatcmpl-"}
	responsesAPI = &api{readResponses, func(j *job) renderer { return &responsesRenderer{j: j} }, "resp_"}
)

func (s *Server) chatCompletions(x *exchange) { s.generate(x, chatAPI) }
func (s *Server) completions(x *exchange)     { s.generate(x, textAPI) }
func (s *Server) responses(x *exchange)       { s.generate(x, responsesAPI) }

func (s *Server) messages(x *exchange) {
	x.anthropic = true
	s.generate(x, messagesAPI)
}
