package caddyllm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// goldenText compares what a command printed with a file.
func goldenText(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "status", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs from its golden (-update rewrites it); got\n%s", name, got)
	}
	if strings.Contains(got, canary) {
		t.Errorf("%s has text of a prompt", name)
	}
}

// command runs one of the subcommands as caddy does.
func command(name, stdin string, args ...string) (stdout string, err error) {
	registered := caddycmd.Commands()[name]
	cmd := &cobra.Command{Use: name, SilenceErrors: true}
	registered.CobraFunc(cmd)
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	err = cmd.Execute()
	return out.String(), err
}

func TestPrintedStatusGolden(t *testing.T) {
	text, err := os.ReadFile("testdata/status/state.json")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := printStatus(&out, text); err != nil {
		t.Fatal(err)
	}
	goldenText(t, "status.txt", out.String())
	out.Reset()
	if err := printStatus(&out, []byte(`{"states":[]}`)); err != nil || out.String() != "No loaded configuration has lb_policy llm_prefix.\n" {
		t.Errorf("without a state: %q, %v", out.String(), err)
	}
}

func TestPrintedExplanationGolden(t *testing.T) {
	var out strings.Builder
	printExplanation(&out, &explanation{
		Path: "/v1/chat/completions", Kind: "chat",
		Prompt: &promptLengths{Tokens: 1700, Blocks: 27, FirstBlock: "f148205d9e3dd128", Hash: "ae670cf2e338847e"},
		Choice: &foreseen{Upstream: "b:1", Reason: "load", DecidedBy: "cost", FirstToken: 0.2886},
		Upstreams: []upstreamTerms{
			{Address: "b:1", Standing: "sound", Prefill: 0.2886, Cost: 0.2886, FirstToken: 0.2886},
			{Address: "d:1", Standing: "sound", MatchedTokens: 1638, MatchedBlocks: 27, Queue: 0.2174, Prefill: 0.1113, Stall: 0.0011, Cost: 0.3298, FirstToken: 0.3287},
			{Address: "c:1", Standing: "suspect", Prefill: 0.2886, Stall: 0.0105, Copy: -0.1, Cost: 0.1991, FirstToken: 0.2886},
			{Address: "e:1", Standing: "unavailable"},
		},
	})
	goldenText(t, "explain.txt", out.String())
	out.Reset()
	printExplanation(&out, &explanation{Path: "/v1/models", Fallback: whyPath})
	if out.String() != "/v1/models goes to the fallback policy: path\n" {
		t.Errorf("a fallback is told as %q", out.String())
	}
}

// The commands reach the admin API, and tell its errors in its own words.
func TestCommandsAskTheAdminAPI(t *testing.T) {
	newLookout(t, LLMPrefix{}, "a:1")
	mux := http.NewServeMux()
	for _, r := range (adminAPI{}).Routes() {
		mux.HandleFunc(r.Pattern, func(w http.ResponseWriter, req *http.Request) {
			var refused caddy.APIError
			if errors.As(r.Handler.ServeHTTP(w, req), &refused) {
				w.WriteHeader(refused.HTTPStatus)
				fmt.Fprintf(w, `{"error":%q}`+"\n", refused.Err.Error())
			}
		})
	}
	server := httptest.NewServer(mux)
	defer server.Close()
	address := "--address=" + server.Listener.Addr().String()
	for _, c := range []struct {
		name, stdin string
		args        []string
		want, fails string
	}{
		{"llm-status", "", nil, "a:1       unknown", ""},
		{"llm-status", "", []string{"--json", "--state", "default"}, `"address":"a:1"`, ""},
		{"llm-status", "", []string{"--state", "x"}, "", `there is no state "x", only default`},
		{"llm-status", "", []string{"--interval", "1ms"}, "", "--interval must be at least 1s"},
		{"llm-status", "", []string{"surplus"}, "", "unknown command"},
		{"llm-explain", chatBody("Hello.", 100), nil, "goes to a:1 for cold: none holds any of the prompt. It costs least.", ""},
		{"llm-explain", `{"prompt":"Hello."}`, []string{"--path", "/v1/completions", "--json"}, `"kind":"completions"`, ""},
		{"llm-explain", `{"prompt":`, []string{"--upstream", "a:1"}, "", "the body is not JSON: unexpected end of JSON input at byte 10, line 1, column 10"},
		{"llm-explain", "", []string{"--header", "nonsense"}, "", "--header must be as 'Name: value', got \"nonsense\""},
	} {
		out, err := command(c.name, c.stdin, append(c.args, address)...)
		if !strings.Contains(out, c.want) || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("caddy %s %q prints\n%s%v, want %q or the error %q", c.name, c.args, out, err, c.want, c.fails)
		}
	}
	server.Close()
	if _, err := command("llm-status", "", address); err == nil || !strings.Contains(err.Error(), "asking Caddy at ") {
		t.Errorf("without a Caddy the error is %v", err)
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		looks := 0
		var out strings.Builder
		err := watch(ctx, &out, 2*time.Second, false, func(w io.Writer) error {
			looks++
			if looks == 3 {
				return errors.New("asking Caddy: it restarts")
			}
			_, err := fmt.Fprintf(w, "look %d\n", looks)
			return err
		})
		if want := "look 1\n\nlook 2\n\nasking Caddy: it restarts\n\nlook 4\n"; err != nil || out.String() != want {
			t.Errorf("four looks print %q, %v, want %q", out.String(), err, want)
		}
	})
	gone := errors.New("nobody there")
	if err := watch(t.Context(), io.Discard, time.Second, false, func(io.Writer) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("a first look that fails ends with %v", err)
	}
}
