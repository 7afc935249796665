package fidelity

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/simtest"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

const (
	// The recorded servers', see testdata/vllm/README.md.
	model     = "tiny-llama"
	blockSize = 32
)

func recorded(version string) string {
	return filepath.Join("..", "..", "..", "testdata", "vllm", version)
}

// recordedServer is the engine of the server that answered the script.
func recordedServer() simengine.Config {
	return simengine.Config{BlockSize: blockSize, Blocks: 129, MaxModelLen: 512, MaxNumSeqs: 4, MaxNumBatchedTokens: 512}
}

// simulated runs a server of this engine until the test ends. Its time goes a
// thousand times as fast as the clock.
func simulated(t *testing.T, config simengine.Config, profile vllmmetrics.Profile) http.Handler {
	t.Helper()
	return simtest.Start(t, simtest.Server{Model: model, Engine: config, Profile: profile, Speed: 1000})
}

// ask sends one request to a handler and returns its whole answer.
func ask(server http.Handler, method, path string, header http.Header, body []byte) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, bytes.NewReader(body))
	for name, values := range header {
		req.Header[name] = values
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, req)
	return w
}
