package vllmapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

// Defaults of Config and HTTPServer.
const (
	// DefaultMaxBody lets a whole context of 131072 tokens through many times
	// over, with images.
	DefaultMaxBody = 128 << 20

	// DefaultKeepAlive is how long vLLM's web server keeps an idle connection.
	DefaultKeepAlive = 5 * time.Second
)

// Version is what /version tells: the vLLM version whose API this is.
const Version = "0.26.0"

// Config is what a Server is made from.
type Config struct {
	// Model is the name that requests must give, if they give one. Required.
	Model string

	// ServedModels are further names. Each has its own prefix cache, as an
	// adapter has.
	ServedModels []string

	// MaxModelLen bounds prompt and reply together, in tokens. Default, and
	// bound, is the engine's.
	MaxModelLen int

	// Driver runs the engine, or the data-parallel engines. Required.
	Driver Driver

	// Exporter writes /metrics. Without it the page is 404. The driver's
	// Options.Observe should be its Observe.
	Exporter *vllmmetrics.Exporter

	// Seed decides what replies say and how long they are.
	Seed uint64

	// Instance tells servers of one seed apart in the ids of answers.
	Instance string

	// NoPromptTokensDetails leaves cached_tokens out of usage, as vLLM does
	// without --enable-prompt-tokens-details.
	NoPromptTokensDetails bool

	// MaxBody bounds a request's body, in bytes; a larger one gets 413. Default
	// 128 MiB.
	MaxBody int64

	// Journal, if not nil, is called at the end of each request but those for
	// /metrics and for a state of the server. Calls may be concurrent.
	Journal func(Entry)
}

// Driver is a *live.Driver, or a *live.Group of data-parallel ones.
type Driver interface {
	Config() simengine.Config
	Stats() simengine.Stats
	Generate(context.Context, simengine.Request) (*live.Stream, error)
	Rank(int) *live.Driver // of X-data-parallel-rank; nil if there is none
	ResetPrefixCache() bool
	Pause()
	Resume()
	SlowBy(factor float64)
	Restart()
}

// Server is the HTTP API of one simulated vLLM server.
type Server struct {
	c        Config
	created  int64
	routes   map[string]route
	faults   *Faults
	ids      atomic.Uint64 // answers so far
	idSeed   uint64
	inFlight atomic.Int64 // requests to generate
	dead     atomic.Bool  // a request found the driver stopped
}

// route is what a path answers; quiet ones are neither journalled nor counted.
type route struct {
	methods []string
	quiet   bool
	serve   func(*Server, *exchange)
}

var routes = map[string]route{
	"/v1/chat/completions": {[]string{"POST"}, false, (*Server).chatCompletions},
	"/v1/completions":      {[]string{"POST"}, false, (*Server).completions},
	"/v1/models":           {[]string{"GET"}, false, (*Server).models},
	"/tokenize":            {[]string{"POST"}, false, (*Server).tokenize},
	"/detokenize":          {[]string{"POST"}, false, (*Server).detokenize},
	"/health":              {[]string{"GET"}, true, (*Server).health},
	"/ping":                {[]string{"GET", "POST"}, true, (*Server).health},
	"/version":             {[]string{"GET"}, true, (*Server).version},
	"/load":                {[]string{"GET"}, true, (*Server).load},
	"/metrics":             {[]string{"GET"}, true, (*Server).metrics},
	"/metrics/":            {[]string{"GET"}, true, (*Server).metrics},
}

// New makes a Server. The driver must be running by the time of the first
// request.
func New(c Config) (*Server, error) {
	if c.Model == "" {
		return nil, errors.New("making a server: no model name")
	}
	if c.Driver == nil {
		return nil, errors.New("making a server: no driver")
	}
	bound := c.Driver.Config().MaxModelLen
	c.MaxModelLen = cmp.Or(c.MaxModelLen, bound)
	if c.MaxModelLen < 2 || c.MaxModelLen > bound {
		return nil, fmt.Errorf("making a server: model length is %d, want 2 to %d", c.MaxModelLen, bound)
	}
	if c.MaxBody < 0 {
		return nil, fmt.Errorf("making a server: body bound is %d, want 0 or more", c.MaxBody)
	}
	c.MaxBody = cmp.Or(c.MaxBody, DefaultMaxBody)
	s := &Server{
		c:       c,
		created: time.Now().Unix(),
		routes:  routes,
		idSeed:  mix(c.Seed) ^ xxhash.Sum64String(c.Instance),
	}
	s.faults = newFaults(s)
	return s, nil
}

// Faults breaks the server on purpose.
func (s *Server) Faults() *Faults { return s.faults }

// HTTPServer is an http.Server for s that closes connections idle for
// keepAlive, and those whose header takes longer than a minute. It has no
// bound for bodies and answers: they take as long as they take.
func (s *Server) HTTPServer(keepAlive time.Duration) *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: time.Minute,
		IdleTimeout:       keepAlive,
		MaxHeaderBytes:    4 << 20, // vLLM's --h11-max-incomplete-event-size
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(w, r)
	known, ok := s.routes[r.URL.Path]
	defer s.end(x, known.quiet, ok)
	w.Header().Set("Server", "uvicorn")
	switch {
	case !ok:
		detail(x, http.StatusNotFound, "Not Found")
	case !slices.Contains(known.methods, r.Method):
		x.Header().Set("Allow", strings.Join(known.methods, ", "))
		detail(x, http.StatusMethodNotAllowed, "Method Not Allowed")
	default:
		known.serve(s, x)
	}
}

// end writes down what became of a request, also when a fault ends it by a
// panic, which goes on to the http.Server.
func (s *Server) end(x *exchange, quiet, known bool) {
	if quiet {
		return
	}
	if s.c.Exporter != nil {
		handler := "none"
		if known {
			handler = x.r.URL.Path
		}
		s.c.Exporter.ObserveHTTP(vllmmetrics.HTTPAnswer{
			Handler: handler, Method: x.r.Method, Status: x.entry.Status,
			Took: time.Since(x.entry.Time), Received: x.r.ContentLength, Sent: x.length(),
		})
	}
	if s.c.Journal != nil {
		x.entry.Aborted = x.entry.Aborted || x.r.Context().Err() != nil
		s.c.Journal(x.entry)
	}
}

func (s *Server) health(x *exchange) {
	status := http.StatusOK
	if s.dead.Load() {
		status = http.StatusServiceUnavailable
	}
	x.WriteHeader(status)
}

func (s *Server) version(x *exchange) {
	writeJSON(x, http.StatusOK, map[string]string{"version": Version})
}

// load counts as vLLM does with --enable-server-load-tracking.
func (s *Server) load(x *exchange) {
	writeJSON(x, http.StatusOK, map[string]int64{"server_load": s.inFlight.Load()})
}

func (s *Server) metrics(x *exchange) {
	if s.faults.servePage(x) {
		return
	}
	if s.c.Exporter == nil {
		detail(x, http.StatusNotFound, "Not Found")
		return
	}
	x.Header().Set("Content-Type", s.c.Exporter.ContentType())
	_, _ = s.c.Exporter.WriteTo(x) // a scraper that left needs no answer
}

type modelCard struct {
	ID          string  `json:"id"`
	Object      string  `json:"object"`
	Created     int64   `json:"created"`
	OwnedBy     string  `json:"owned_by"`
	Root        string  `json:"root"`
	Parent      *string `json:"parent"`
	MaxModelLen int     `json:"max_model_len"`
	Permission  []any   `json:"permission"`
}

func (s *Server) models(x *exchange) {
	cards := make([]modelCard, 0, 1+len(s.c.ServedModels))
	for i, name := range append([]string{s.c.Model}, s.c.ServedModels...) {
		card := modelCard{
			ID: name, Object: "model", Created: s.created, OwnedBy: "vllm", Root: name,
			MaxModelLen: s.c.MaxModelLen, Permission: []any{},
		}
		if i > 0 {
			card.Parent = &s.c.Model
		}
		cards = append(cards, card)
	}
	writeJSON(x, http.StatusOK, map[string]any{"object": "list", "data": cards})
}

// resolve finds the model that a request means.
func (s *Server) resolve(name string) (string, *apiError) {
	if name == "" {
		return s.c.Model, nil
	}
	if name != s.c.Model && !slices.Contains(s.c.ServedModels, name) {
		return "", unknownModel(name)
	}
	return name, nil
}
