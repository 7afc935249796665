package vllmapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
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

// write answers with e; in Anthropic's shape where that API was asked, unless
// it is pydantic's, which comes before any API.
func (e *apiError) write(x *exchange) {
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

// invalid is what the layer before that has to say, pydantic, which checks a
// body's syntax and types. Of several such errors in a body only the first is
// told here.
type invalid struct {
	kind, loc, msg string
	input          string // as shown: see shownInput; empty is left out
	cause          string // ctx.error; empty is left out
}

func (v invalid) error() *apiError {
	var b strings.Builder
	fmt.Fprintf(&b, "1 validation error:\n  {'type': %s, 'loc': %s, 'msg': %s", pyString(v.kind), pyString(v.loc), pyString(v.msg))
	if v.input != "" {
		b.WriteString(", 'input': " + v.input)
	}
	if v.cause != "" {
		b.WriteString(", 'ctx': {'error': " + pyString(v.cause) + "}")
	}
	b.WriteString("}")
	return &apiError{http.StatusBadRequest, "Bad Request", b.String(), v.loc}
}

// malformed refuses the value raw at loc.
func malformed(kind, loc, msg string, raw json.RawMessage) *apiError {
	return invalid{kind: kind, loc: loc, msg: msg, input: shownInput(raw)}.error()
}

// inputMax bounds, in bytes, what an error repeats of a value.
const inputMax = 200

// shownInput is a value as errors repeat it, in Python's notation: containers
// by size only, texts to inputMax bytes.
func shownInput(raw json.RawMessage) string {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "None"
	case raw[0] == '"':
		s := unquote(raw)
		if len(s) > inputMax {
			s = strings.ToValidUTF8(s[:inputMax], "") + "...[truncated]"
		}
		return pyString(s)
	case raw[0] == '{':
		members, _ := scanObject(raw)
		return fmt.Sprintf("'<dict of %d items>'", len(members))
	case raw[0] == '[':
		items, _ := scanList(raw)
		return fmt.Sprintf("'<list of %d items>'", len(items))
	case string(raw) == "true":
		return "True"
	case string(raw) == "false":
		return "False"
	}
	return string(raw[:min(len(raw), inputMax)])
}

// pyString is a text in Python's quotes.
func pyString(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b := []byte{quote}
	for _, r := range s {
		switch {
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\\' || r == rune(quote):
			b = append(b, '\\', byte(r))
		case r < ' ' || r == 0x7f:
			b = fmt.Appendf(b, `\x%02x`, r)
		default:
			b = append(b, string(r)...)
		}
	}
	return string(append(b, quote))
}

var unreadable = &apiError{http.StatusBadRequest, "Bad Request", "There was an error parsing the body", ""}

func unknownModel(name string) *apiError {
	return &apiError{http.StatusNotFound, "NotFoundError", fmt.Sprintf("The model `%s` does not exist.", name), "model"}
}

// tooLong is the answer to a prompt that doesn't fit with its reply. It comes
// before a stream starts.
func tooLong(maxLen, prompt, output int) *apiError {
	return refuseValue("input_tokens", prompt,
		"This model's maximum context length is %d tokens. However, you requested %d output tokens and your prompt contains %d input tokens, for a total of %d tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
		maxLen, output, prompt, prompt+output)
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
