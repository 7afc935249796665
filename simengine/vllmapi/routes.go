package vllmapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

// route is what a path answers; quiet ones are neither journalled nor counted.
type route struct {
	methods []string // all if empty
	quiet   bool
	serve   func(*Server, *exchange)
}

var (
	get  = []string{"GET"}
	post = []string{"POST"}
)

var routes = map[string]route{
	"/v1/chat/completions":        {post, false, (*Server).chatCompletions},
	"/v1/completions":             {post, false, (*Server).completions},
	"/v1/responses":               {post, false, (*Server).responses},
	"/v1/messages":                {post, false, (*Server).messages},
	"/v1/messages/count_tokens":   {post, false, (*Server).countTokens},
	"/v1/embeddings":              {post, false, (*Server).embeddings},
	"/v1/models":                  {get, false, (*Server).models},
	"/v1/chat/completions/render": {post, false, (*Server).scaleOut},
	"/v1/completions/render":      {post, false, (*Server).scaleOut},
	"/inference/v1/generate":      {post, false, (*Server).scaleOut},
	"/tokenize":                   {post, false, (*Server).tokenize},
	"/detokenize":                 {post, false, (*Server).detokenize},
	"/health":                     {get, true, (*Server).health},
	"/ping":                       {[]string{"GET", "POST"}, true, (*Server).health},
	"/version":                    {get, true, (*Server).version},
	"/load":                       {get, true, (*Server).load},
	"/invocations":                {post, false, (*Server).invocations},
	"/metrics":                    {nil, true, (*Server).metrics},
}

// devRoutes are those of VLLM_SERVER_DEV_MODE.
var devRoutes = map[string]route{
	"/sleep":               {post, false, (*Server).sleep},
	"/wake_up":             {post, false, (*Server).wakeUp},
	"/is_sleeping":         {get, false, (*Server).isSleeping},
	"/reset_prefix_cache":  {post, false, (*Server).resetPrefixCache},
	"/reset_mm_cache":      {post, false, (*Server).resetNothing},
	"/reset_encoder_cache": {post, false, (*Server).resetNothing},
	"/pause":               {post, false, (*Server).pause},
	"/resume":              {post, false, (*Server).resume},
	"/is_paused":           {get, false, (*Server).isPaused},
}

// loraRoutes are those of VLLM_ALLOW_RUNTIME_LORA_UPDATING.
var loraRoutes = map[string]route{
	"/v1/load_lora_adapter":   {post, false, (*Server).loadAdapter},
	"/v1/unload_lora_adapter": {post, false, (*Server).unloadAdapter},
}

func (c *Config) routes() map[string]route {
	all := maps.Clone(routes)
	if c.DevMode {
		maps.Copy(all, devRoutes)
	}
	if c.RuntimeLoRA {
		maps.Copy(all, loraRoutes)
	}
	return all
}

// Routes whose path has an id in it, by what they are called in metrics.
const (
	responsePath = "/v1/responses/{response_id}"
	cancelPath   = "/v1/responses/{response_id}/cancel"
)

// find is the route of a path, and its name.
func (s *Server) find(path string) (route, string, bool) {
	if r, ok := s.routes[path]; ok {
		return r, path, true
	}
	if strings.HasPrefix(path, "/metrics/") { // mounted, so with all that is below
		return s.routes["/metrics"], path, true
	}
	id, ok := strings.CutPrefix(path, "/v1/responses/")
	if !ok || id == "" {
		return route{}, "", false
	}
	if before, ok := strings.CutSuffix(id, "/cancel"); ok && before != "" && !strings.Contains(before, "/") {
		return route{post, false, (*Server).cancelResponse}, cancelPath, true
	}
	if strings.Contains(id, "/") {
		return route{}, "", false
	}
	return route{get, false, (*Server).retrieveResponse}, responsePath, true
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(w, r, s.c.Journal != nil)
	known, name, ok := s.find(r.URL.Path)
	if !ok {
		name = "none"
	}
	defer s.end(x, name, known.quiet)
	h := w.Header()
	h["Server"], h["Vary"] = uvicorn, origin
	switch {
	case isPreflight(r):
		refusePreflight(x)
	case !s.authorized(r):
		writeJSON(x, http.StatusUnauthorized, map[string]string{"error": "Unauthorized"})
	case !ok && s.redirect(x):
	case !ok:
		detail(x, http.StatusNotFound, "Not Found")
	case known.methods != nil && !slices.Contains(known.methods, r.Method):
		x.Header().Set("Allow", known.methods[0])
		detail(x, http.StatusMethodNotAllowed, "Method Not Allowed")
	default:
		known.serve(s, x)
	}
}

// What vLLM's web server and its CORS middleware put on every answer.
var (
	uvicorn = []string{"uvicorn"}
	origin  = []string{"Origin"}
)

// end writes down what became of a request, also when a fault ends it by a
// panic, which goes on to the http.Server.
func (s *Server) end(x *exchange, name string, quiet bool) {
	if quiet {
		return
	}
	if s.c.Exporter != nil {
		s.c.Exporter.ObserveHTTP(vllmmetrics.HTTPAnswer{
			Handler: name, Method: x.r.Method, Status: x.entry.Status,
			Took: time.Since(x.entry.Time), Received: x.r.ContentLength, Sent: x.length(),
		})
	}
	if s.c.Journal != nil {
		x.entry.Aborted = x.entry.Aborted || x.r.Context().Err() != nil
		s.c.Journal(x.entry)
	}
}

// scaleOut refuses what vLLM serves with --enable-scale-out only.
func (s *Server) scaleOut(x *exchange) {
	if _, ok := x.body(s.c.MaxBody); ok {
		(&apiError{http.StatusForbidden, "PermissionDeniedError", "Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them.", ""}).write(x)
	}
}

// retrieveResponse answers with an answer of the Responses API once more.
func (s *Server) retrieveResponse(x *exchange) {
	id := strings.TrimPrefix(x.r.URL.Path, "/v1/responses/")
	if r := s.store.get(id); r != nil {
		writeBody(x, http.StatusOK, r.body)
		return
	}
	unknownResponse(id).write(x)
}

// cancelResponse refuses: only what runs in the background can be cancelled.
func (s *Server) cancelResponse(x *exchange) {
	id := strings.TrimSuffix(strings.TrimPrefix(x.r.URL.Path, "/v1/responses/"), "/cancel")
	if s.store.get(id) == nil {
		unknownResponse(id).write(x)
		return
	}
	(&apiError{http.StatusBadRequest, "invalid_request_error", "Cannot cancel a synchronous response.", "response_id"}).write(x)
}
