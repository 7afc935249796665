package caddyllm

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// Audio comes as a form with a file in it. What the decision can use of it is
// the model, and how much work the file is.
const (
	// formField bounds the fields that are read, bytes.
	formField = 4096
	// formParts bounds the fields that are looked at.
	formParts = 64
	// audioBytes is what one token takes of a file: 25 a second, of compressed
	// audio of 128 kbit/s.
	audioBytes = 16000 / 25
)

// boundary is that of a multipart form, empty for other bodies.
func boundary(h http.Header) string {
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		return ""
	}
	return params["boundary"]
}

// readForm reads what it can of a form's first bytes. It reports false if that
// holds neither a model nor a file.
func readForm(boundary string, head []byte) (route.Request, bool) {
	var q route.Request
	found := false
	r := multipart.NewReader(bytes.NewReader(head), boundary)
	for range formParts {
		part, err := r.NextRawPart()
		if err != nil {
			break // the end, also where the head ends; the engine judges the rest
		}
		if part.FileName() != "" {
			n, _ := io.Copy(io.Discard, part)
			q.ExtraTokens += int(n) / audioBytes
			found = true
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, formField))
		if err != nil {
			break
		}
		switch part.FormName() {
		case "model":
			q.Model = xxhash.Sum64(value)
			found = found || len(value) > 0
		case "prompt":
			q.Bytes = len(value)
		case "stream":
			q.Stream = string(value) == "true"
		}
	}
	return q, found
}
