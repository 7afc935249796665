package vllmapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// apiError is an answer of the API other than success, in vLLM's shape.
type apiError struct {
	status  int
	kind    string
	message string
	param   string // empty is null
}

func (e *apiError) Error() string { return e.message }

type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}

func (e *apiError) body() errorBody {
	d := errorDetail{Message: e.message, Type: e.kind, Code: e.status}
	if e.param != "" {
		d.Param = &e.param
	}
	return errorBody{d}
}

func (e *apiError) write(w http.ResponseWriter) { writeJSON(w, e.status, e.body()) }

// refuse is vLLM's answer to a value that it checks itself.
func refuse(param, format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "BadRequestError", fmt.Sprintf(format, args...), param}
}

// malformed is the answer of the layer before that, which checks a body's
// syntax and types. Unlike vLLM's it doesn't repeat the input, which may hold
// a prompt.
func malformed(kind, loc, msg string) *apiError {
	if loc != "" {
		loc = " " + loc
	}
	return &apiError{
		status:  http.StatusBadRequest,
		kind:    "Bad Request",
		message: fmt.Sprintf("1 validation error:\n  {'type': '%s', 'loc': ('body',%s), 'msg': '%s'}", kind, loc, msg),
	}
}

func unknownModel(name string) *apiError {
	return &apiError{http.StatusNotFound, "NotFoundError", fmt.Sprintf("The model `%s` does not exist.", name), "model"}
}

// tooLong is the answer to a prompt that doesn't fit with its reply. It comes
// before a stream starts.
func tooLong(maxLen, prompt, output int) *apiError {
	return refuse("input_tokens",
		"This model's maximum context length is %d tokens. However, you requested %d output tokens and your prompt contains %d input tokens, for a total of %d tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=%d)",
		maxLen, output, prompt, prompt+output, prompt)
}

func internalError(message string) *apiError {
	return &apiError{http.StatusInternalServerError, "InternalServerError", message, ""}
}

// detail is an answer of the web framework, not of the API.
func detail(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, map[string]string{"detail": text})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		// All that is answered is made of strings and integers.
		panic(fmt.Errorf("encoding an answer: %w", err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that left is seen by its context
}
