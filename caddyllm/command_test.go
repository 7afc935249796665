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
	synctest.Test(t, func(t *testing.T) {
		l := newLookout(t, LLMPrefix{State: "golden"}, "a:1", "b:1", "c:1", "d:1")
		l.story()
		_, text, _ := ask(t, "GET", "/llm_prefix/state", "")
		var out strings.Builder
		if err := printStatus(&out, []byte(text)); err != nil {
			t.Fatal(err)
		}
		goldenText(t, "status.txt", out.String())
	})
	var out strings.Builder
	if err := printStatus(&out, []byte(`{"states":[]}`)); err != nil || out.String() != "No loaded configuration has lb_policy llm_prefix.\n" {
		t.Errorf("without a state: %q, %v", out.String(), err)
	}
}

func TestPrintedExplanationGolden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookout(t, LLMPrefix{State: "golden"}, "a:1", "b:1", "c:1", "d:1")
		l.story()
		e := explained(t, "/llm_prefix/explain?state=golden", chatBody("First conversation.", 700))
		var out strings.Builder
		printExplanation(&out, &e)
		goldenText(t, "explain.txt", out.String())
	})
	var out strings.Builder
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
