// Package simtest runs simulated vLLM servers for tests.
package simtest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmapi"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

// Server is what to run.
type Server struct {
	Model   string
	Engine  simengine.Config
	Profile vllmmetrics.Profile // "" is the newest
	Speed   float64             // of its time, relative to the clock's
}

// Start runs a server's engine until the test ends, and returns its API.
func Start(t *testing.T, s Server) http.Handler {
	t.Helper()
	engine, err := simengine.New(s.Engine)
	if err != nil {
		t.Fatal(err)
	}
	var driver *live.Driver
	exporter, err := vllmmetrics.New(vllmmetrics.Options{
		Model: s.Model, Cache: vllmmetrics.CacheInfoOf(s.Engine), Profile: s.Profile,
		Stats: func(int) simengine.Stats { return driver.Stats() }, Start: time.Now(), MaxModelLen: s.Engine.MaxModelLen,
	})
	if err != nil {
		t.Fatal(err)
	}
	driver = live.New(engine, live.Options{Speed: s.Speed, Observe: exporter.Observer(0)})
	server, err := vllmapi.New(vllmapi.Config{Model: s.Model, Driver: driver, Exporter: exporter})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { // ends at the test's end, which waits for it
		defer close(ended)
		_ = driver.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return server
}
