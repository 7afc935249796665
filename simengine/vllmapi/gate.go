package vllmapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// guarded are the paths that ask for a key, if there are keys.
var guarded = []string{"/v1", "/v2", "/inference", "/cohere"}

// authorized tells whether a request may pass, as vLLM's --api-key decides.
func (s *Server) authorized(r *http.Request) bool {
	if len(s.keys) == 0 || r.Method == http.MethodOptions {
		return true
	}
	for _, prefix := range guarded {
		if strings.HasPrefix(r.URL.Path, prefix) {
			return s.hasKey(r.Header.Get("Authorization"))
		}
	}
	return true
}

func (s *Server) hasKey(authorization string) bool {
	scheme, key, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return false
	}
	given, equal := sha256.Sum256([]byte(key)), 0
	for _, k := range s.keys {
		equal |= subtle.ConstantTimeCompare(k[:], given[:])
	}
	return equal == 1
}

func hashKeys(keys []string) (hashes [][sha256.Size]byte) {
	for _, k := range keys {
		hashes = append(hashes, sha256.Sum256([]byte(k)))
	}
	return hashes
}

// isPreflight tells whether a browser asks what it may.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

const corsMethods = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, QUERY"

// refusePreflight tells a browser that it may not: vLLM allows no origin unless
// it is told to.
func refusePreflight(x *exchange) {
	h := x.Header()
	h.Set("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers, Access-Control-Request-Private-Network")
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Max-Age", "600")
	if wanted := x.r.Header.Get("Access-Control-Request-Headers"); wanted != "" {
		h.Set("Access-Control-Allow-Headers", wanted)
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	text := "Disallowed CORS origin"
	if !strings.Contains(" "+corsMethods+",", " "+x.r.Header.Get("Access-Control-Request-Method")+",") {
		text += ", method"
	}
	x.WriteHeader(http.StatusBadRequest)
	_, _ = x.Write([]byte(text)) // a client that left needs no answer
}

// redirect sends who put a slash behind a path to the path, and tells whether
// there is one.
func (s *Server) redirect(x *exchange) bool {
	path, slash := strings.CutSuffix(x.r.URL.Path, "/")
	if _, _, ok := s.find(path); !slash || !ok {
		return false
	}
	url := *x.r.URL
	url.Scheme, url.Host, url.Path, url.RawPath = "http", x.r.Host, path, ""
	x.Header()["Location"], x.Header()["Content-Length"] = []string{url.String()}, []string{"0"}
	x.WriteHeader(http.StatusTemporaryRedirect)
	return true
}
