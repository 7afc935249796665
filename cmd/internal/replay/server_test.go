package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

// server answers chat requests with what the test wants on the wire and keeps
// the bodies that came.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	conns  map[string]bool // client addresses
}

func newServer(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{conns: make(map[string]bool)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading a request: %v", err)
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, string(body))
		s.conns[r.RemoteAddr] = true
		s.mu.Unlock()
		answer(w, r)
	})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object":"list","data":[{"id":"small","object":"model"},{"id":"large","object":"model"}]}`)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// sent are the requests' bodies so far.
func (s *server) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// events writes a stream of data lines.
func events(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, line := range lines {
			fmt.Fprintf(w, "data: %s\n\n", line)
			w.(http.Flusher).Flush()
		}
	}
}

const (
	role   = `{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`
	hello  = `{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hello"}}]}`
	world  = `{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" there"},"finish_reason":"stop"}]}`
	usage  = `{"id":"1","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":40,"completion_tokens":2,"total_tokens":42,"prompt_tokens_details":{"cached_tokens":32}}}`
	noHits = `{"id":"1","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":40,"completion_tokens":2,"total_tokens":42,"prompt_tokens_details":null}}`
)

// twoTurns is a conversation whose second turn shows what the first left.
var twoTurns = `{"id":"c","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"One?"},
	{"role":"assistant","content":"recorded"},{"role":"user","content":"Two?"}]}`

func conversations(t *testing.T, text string) []trace.Conversation {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(text), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tr.Conversations
}

func replayed(t *testing.T, text string, o Options) []Record {
	t.Helper()
	if o.Model == "" {
		o.Model = "small"
	}
	records, err := Run(t.Context(), conversations(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// contents lists the messages of a request's body as role:content.
func contents(t *testing.T, body string) string {
	t.Helper()
	var r struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range r.Messages {
		all = append(all, m.Role+":"+m.Content)
	}
	return strings.Join(all, " ")
}
