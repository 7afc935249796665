package vllmapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// apiError is an answer of the API other than success, in vLLM's shape.
type apiError struct {
	status  int
	kind    string // empty: the web framework's
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

// write answers with e; in Anthropic's shape where that API was asked, unless
// it is pydantic's, which comes before any API.
func (e *apiError) write(x *exchange) {
	if e.kind == "" {
		detail(x, e.status, e.message)
		return
	}
	if x.anthropic && e.kind != "Bad Request" {
		writeJSON(x, e.status, e.anthropicBody())
		return
	}
	writeJSON(x, e.status, e.body())
}

// refuse is vLLM's answer to a value that it checks itself.
func refuse(param, format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "BadRequestError", fmt.Sprintf(format, args...), param}
}

// refuseValue is refuse with the parameter and its value behind the message.
func refuseValue(param string, value any, format string, args ...any) *apiError {
	return refuse(param, "%s (parameter=%s, value=%v)", fmt.Sprintf(format, args...), param, value)
}

// refuseParam is refuse with the parameter behind the message.
func refuseParam(param, format string, args ...any) *apiError {
	return refuse(param, "%s (parameter=%s)", fmt.Sprintf(format, args...), param)
}

// unreadable is the web framework's answer to a body in which Python finds no
// JSON and can't say where.
var unreadable = &apiError{http.StatusBadRequest, "", "There was an error parsing the body", ""}

// unknownModel is the answer to a name that isn't served.
func (s *Server) unknownModel(name string) *apiError {
	return &apiError{http.StatusNotFound, "NotFoundError", fmt.Sprintf("The model `%s` does not exist. Valid aliases: %s.", name, s.c.Model), "model"}
}

// tooLong is the answer to a prompt that doesn't fit. It comes before a stream
// starts.
func tooLong(maxLen, prompt int) *apiError {
	least := ""
	if prompt == maxLen+1 {
		least = "at least " // vLLM's tokenizer stops here
	}
	return refuseValue("input_tokens", prompt,
		"This model's maximum context length is %d tokens. However, your prompt contains %s%d input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.",
		maxLen, least, prompt)
}

func internalError(message string) *apiError {
	return &apiError{http.StatusInternalServerError, "InternalServerError", message, ""}
}

// detail is an answer of the web framework, not of the API.
func detail(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, map[string]string{"detail": text})
}

func writeJSON(w http.ResponseWriter, status int, v any) { writeBody(w, status, encode(v)) }

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// All that is answered is made of strings and integers.
		panic(fmt.Errorf("encoding an answer: %w", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// writeBody answers with JSON text.
func writeBody(w http.ResponseWriter, status int, b []byte) {
	h := w.Header()
	h["Content-Type"] = contentJSON
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that left is seen by its context
}

var contentJSON = []string{"application/json"}
