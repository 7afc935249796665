package vllmapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
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

	// DefaultStoredResponses is how many answers of the Responses API a client
	// can go on from.
	DefaultStoredResponses = 1000
)

// Version is the vLLM version whose API this is, and what /version tells unless
// Config.Version says otherwise.
const Version = "0.32.0"

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

	// MaxQueued bounds the requests that run or wait, choices counted one by one:
	// those beyond get 503, as with vLLM's --max-num-queued-reqs. Default 0, no
	// bound but the engine's MaxRequests.
	MaxQueued int

	// Version is what /version tells; default Version.
	Version string

	// Seed decides what replies say and how long they are.
	Seed uint64

	// Instance tells servers of one seed apart in the ids of answers.
	Instance string

	// NoPromptTokensDetails leaves cached_tokens out of usage, as vLLM does
	// without --enable-prompt-tokens-details.
	NoPromptTokensDetails bool

	// SilentMisses leaves cached_tokens out of usage where nothing was cached,
	// as vLLM 0.19 does.
	SilentMisses bool

	// Reasoning makes the model think before it answers a chat, and the server
	// tell it apart, as vLLM does with --reasoning-parser.
	Reasoning bool

	// NoToolParser refuses tools that a client wants called, as vLLM does
	// without --enable-auto-tool-choice and --tool-call-parser.
	NoToolParser bool

	// APIKeys are the keys of which a request under /v1 must give one, as with
	// vLLM's --api-key. Default none: nobody is asked.
	APIKeys []string

	// DevMode serves what vLLM does with VLLM_SERVER_DEV_MODE=1: sleep and wake,
	// pause and resume, and the reset of caches.
	DevMode bool

	// RuntimeLoRA serves /v1/load_lora_adapter and /v1/unload_lora_adapter, as
	// vLLM does with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1.
	RuntimeLoRA bool

	// StoredResponses bounds the answers of the Responses API that a client can
	// go on from; negative is none, as vLLM has without
	// VLLM_ENABLE_RESPONSES_API_STORE=1. All conversations together take at
	// most 64 MiB. Default 1000.
	StoredResponses int

	// MaxBody bounds a request's body, in bytes; a larger one gets 413. Default
	// 128 MiB.
	MaxBody int64

	// Restarted, if not nil, is called when a fault starts the server anew.
	Restarted func()

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
	Sleep(level int, mode simengine.PauseMode) error
	Wake()
	Asleep() (level int, asleep bool)
}

// Server is the HTTP API of one simulated vLLM server.
type Server struct {
	c           Config
	engine      simengine.Config
	created     int64
	fingerprint string
	routes      map[string]route
	keys        [][sha256.Size]byte
	adapters    adapters
	store       *store // nil: nothing is stored
	faults      *Faults
	ids         atomic.Uint64 // of answers and other things, so far
	idSeed      uint64
	inFlight    atomic.Int64 // requests to generate
	queued      atomic.Int64 // sequences that run or wait
	dead        atomic.Bool  // a request found the driver stopped
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
	engine := c.Driver.Config()
	c.MaxModelLen = cmp.Or(c.MaxModelLen, engine.MaxModelLen)
	if c.MaxModelLen < 2 || c.MaxModelLen > engine.MaxModelLen {
		return nil, fmt.Errorf("making a server: model length is %d, want 2 to %d", c.MaxModelLen, engine.MaxModelLen)
	}
	if c.MaxBody < 0 {
		return nil, fmt.Errorf("making a server: body bound is %d, want 0 or more", c.MaxBody)
	}
	c.MaxBody = cmp.Or(c.MaxBody, DefaultMaxBody)
	c.Version = cmp.Or(c.Version, Version)
	s := &Server{
		c:           c,
		engine:      engine,
		created:     time.Now().Unix(),
		fingerprint: fmt.Sprintf("vllm-%s-%08x", c.Version, uint32(xxhash.Sum64String(c.Model))),
		routes:      c.routes(),
		keys:        hashKeys(c.APIKeys),
		idSeed:      mix(c.Seed) ^ xxhash.Sum64String(c.Instance),
	}
	s.adapters.reset(c.ServedModels)
	if c.StoredResponses >= 0 {
		s.store = newStore(cmp.Or(c.StoredResponses, DefaultStoredResponses))
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
