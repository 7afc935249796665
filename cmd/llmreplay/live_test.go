package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/replay"
)

// gateway answers every chat request with status, a stream if that is 200.
func gateway(t *testing.T, status int) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Model string }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Model != "m" {
			t.Errorf("a request asks for model %q (%v), want that of /v1/models", request.Model, err)
		}
		if status != http.StatusOK {
			http.Error(w, "all engines are away", status)
			return
		}
		w.Header().Set("X-LLM", "upstream=gpu1:8000; reason=cold; attempt=1")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}`+"\n\n"+
			`data: {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":1,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}}`+"\n\n"+
			"data: [DONE]\n\n")
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func runReplay(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func questions(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "questions.jsonl")
	if err := os.WriteFile(file, []byte(`{"question_id":1,"turns":["One?","Two?"]}`+"\n"+`{"question_id":2,"turns":["Three?"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestLivePrintsOneJSONObjectAndNothingElseInAPipe(t *testing.T) {
	out, err := runReplay(t, "live", "--trace", questions(t), "--url", gateway(t, http.StatusOK), "--json")
	if err != nil {
		t.Fatal(err)
	}
	var report replay.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("live --json printed %q: %v", out, err)
	}
	r := report.Results[0]
	if report.Trace != "questions.jsonl" || r.Requests != 3 || r.Failed != 0 || r.CachedTokenRatio == nil || *r.CachedTokenRatio != 0.5 {
		t.Errorf("report = %s, want 3 requests without failure, half of the tokens cached", out)
	}
}

func TestLiveStopsAfterTheConversationsAskedFor(t *testing.T) {
	out, err := runReplay(t, "live", "--trace", questions(t), "--url", gateway(t, http.StatusOK), "--conversations", "1")
	if err != nil || !strings.Contains(out, "live: 2 requests, 0 failed") {
		t.Errorf("live --conversations 1 = %v, %q, want the 2 requests of the first", err, out)
	}
}

func TestLiveFailsWhenEveryRequestDoes(t *testing.T) {
	out, err := runReplay(t, "live", "--trace", questions(t), "--url", gateway(t, http.StatusServiceUnavailable))
	if err == nil || !strings.Contains(err.Error(), "all 2 requests failed") {
		t.Errorf("live = %v, want that all failed: without a reply the second question isn't asked", err)
	}
	if want := "error status_503: 2 times: all engines are away"; !strings.Contains(out, want) {
		t.Errorf("live printed %q, want %q", out, want)
	}
}

func TestBadUsageIsRefused(t *testing.T) {
	file := questions(t)
	for _, args := range [][]string{
		{"live"},
		{"live", "--trace", file},
		{"live", "--trace", file, "--url", "nowhere"},
		{"live", "--trace", file, "--url", "http://127.0.0.1:1", "--replies", "none"},
		{"live", "--trace", file, "--url", "http://127.0.0.1:1", "--conversations", "-1"},
		{"live", "--trace", file + ".missing", "--url", "http://127.0.0.1:1"},
		{"live", "--trace", file, "--format", "csv", "--url", "http://127.0.0.1:1"},
		{"live", "--trace", file, "--url", "http://127.0.0.1:1", "extra"},
	} {
		if out, err := runReplay(t, args...); err == nil {
			t.Errorf("llmreplay %s = %q, want an error", strings.Join(args, " "), out)
		}
	}
}

func TestTracesListsTheFormats(t *testing.T) {
	out, err := runReplay(t, "traces")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"conversations", "fastchat", "mt-bench", "tau-bench", "lmcache"} {
		if !strings.Contains(out, "  "+name+" ") {
			t.Errorf("llmreplay traces = %q, want %s in it", out, name)
		}
	}
}
