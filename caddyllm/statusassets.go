package caddyllm

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

//go:embed status
var statusFiles embed.FS

// asset is one file of the page.
type asset struct {
	text []byte
	kind string
	etag string
}

// assets are the page's files by name.
var assets = func() map[string]asset {
	kinds := map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	}
	all := make(map[string]asset)
	entries, err := statusFiles.ReadDir("status")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	for _, e := range entries {
		text, err := statusFiles.ReadFile("status/" + e.Name())
		if err != nil {
			panic(err)
		}
		all[e.Name()] = asset{text, kinds[path.Ext(e.Name())], fmt.Sprintf(`"%x"`, sha256.Sum256(text))[:18] + `"`}
	}
	return all
}()

// contentPolicy lets the page load what stands beside it, and nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP serves the page, its files, its JSON and its events, by the last
// element of the path; anything else is not found.
func (s *LLMStatus) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		return caddyhttp.Error(http.StatusMethodNotAllowed, fmt.Errorf("method %s is not allowed here", r.Method))
	}
	switch name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; name {
	case "":
		if to := withSlash(r); to != "" {
			h.Set("Location", to)
			w.WriteHeader(http.StatusPermanentRedirect)
			return nil
		}
		return serveAsset(w, r, "index.html")
	case "state.json":
		return s.serveState(w, r)
	case "events":
		return s.serveEvents(w, r)
	default:
		return serveAsset(w, r, name)
	}
}

// withSlash is where the page is if the client asked for it without the slash
// that its relative links need, relative to what was asked for.
func withSlash(r *http.Request) string {
	original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if !ok || strings.HasSuffix(original.URL.Path, "/") {
		return ""
	}
	at := original.URL.EscapedPath()
	return "./" + at[strings.LastIndexByte(at, '/')+1:] + "/"
}

func serveAsset(w http.ResponseWriter, r *http.Request, name string) error {
	a, ok := assets[name]
	if !ok {
		return caddyhttp.Error(http.StatusNotFound, fmt.Errorf("the status page has no %q", name))
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Etag", a.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.text))
	return nil
}
