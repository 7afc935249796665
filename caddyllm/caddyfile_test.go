package caddyllm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// adapt returns the policy's JSON in a site whose lb_policy has the given
// lines; its first line is the Caddyfile's third.
func adapt(t *testing.T, policy string) (string, error) {
	t.Helper()
	text := ":8080 {\n\treverse_proxy a:1 b:1 {\n\t\tlb_policy llm_prefix" + policy + "\n\t}\n}\n"
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return "", err
	}
	const key = `"selection_policy":`
	_, after, ok := strings.Cut(string(adapted), key)
	if !ok {
		t.Fatalf("no selection policy in %s", adapted)
	}
	var raw json.RawMessage
	if err := json.NewDecoder(strings.NewReader(after)).Decode(&raw); err != nil {
		t.Fatal(err)
	}
	return string(raw), nil
}

func TestCaddyfile(t *testing.T) {
	for _, c := range []struct{ name, policy, want string }{
		{"the one line", ``, `{"policy":"llm_prefix"}`},
		{"an empty block", ` {
		}`, `{"policy":"llm_prefix"}`},
		{"everything", ` {
			state chat
			max_body 4MiB
			block 512
			memory 1GiB
			scrape /prometheus/metrics
			scrape_interval 250ms
			metrics_url a:1 https://[::1]:9090/a?b=c
			metrics_url http://b:1 http://{host}:{port}/{env.METRICS}
			metrics_url * http://{host}:8002/metrics
			metrics_header authorization "Bearer {env.KEY}"
			metrics_header X-Scope-OrgID llm
			retry_stale off
			session_header x-session-id
			expose x-llm-route
			fallback header X-User {
				fallback round_robin
			}
		}`, `{"block":512,"expose":"x-llm-route","fallback":{"fallback":{"policy":"round_robin"},"field":"X-User","policy":"header"},"max_body":4194304,"memory":1073741824,"metrics_header":{"Authorization":"Bearer {env.KEY}","X-Scope-Orgid":"llm"},"metrics_url":{"*":"http://{host}:8002/metrics","a:1":"https://[::1]:9090/a?b=c","b:1":"http://{host}:{port}/{env.METRICS}"},"policy":"llm_prefix","retry_stale":false,"scrape":"/prometheus/metrics","scrape_interval":250000000,"session_header":"x-session-id","state":"chat"}`},
		{"scrape off", ` {
			scrape off
		}`, `{"policy":"llm_prefix","scrape":"off"}`},
	} {
		got, err := adapt(t, c.policy)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got != c.want {
			t.Errorf("%s: adapts to\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

// Each mistake is refused with the option's name and its place.
func TestCaddyfileMistakes(t *testing.T) {
	for _, c := range []struct{ option, want string }{
		{"nonsense 5", "unrecognized llm_prefix option 'nonsense', at Caddyfile:4"},
		{"nonsense", "unrecognized llm_prefix option 'nonsense', at Caddyfile:4"},
		{"block 256\n\t\t\tblock 512", "llm_prefix option 'block' already specified, at Caddyfile:5"},
		{"fallback random\n\t\t\tfallback random", "llm_prefix option 'fallback' already specified, at Caddyfile:5"},
		{"block", "wrong argument count or unexpected line ending after 'block', at Caddyfile:4"},
		{"block 256 512", "wrong argument count or unexpected line ending after '256', at Caddyfile:4"},
		{"block 16", "block must be from 64B to 4.0KiB, got '16', at Caddyfile:4"},
		{"block many", "block must be a size such as 4096 or 8MiB, got 'many', at Caddyfile:4"},
		{"max_body 0", "max_body must be from 1.0KiB to 256MiB, got '0', at Caddyfile:4"},
		{"max_body 1TiB", "max_body must be from 1.0KiB to 256MiB, got '1TiB', at Caddyfile:4"},
		{"memory -1", "memory must be a size such as 4096 or 8MiB, got '-1', at Caddyfile:4"},
		{"scrape metrics", "scrape must be a path that begins with '/', or 'off', got \"metrics\", at Caddyfile:4"},
		{"scrape_interval 5", "scrape_interval must be a duration such as 500ms, got '5', at Caddyfile:4"},
		{"scrape_interval 1ms", "scrape_interval must be from 50ms to 1m0s, got '1ms', at Caddyfile:4"},
		{"scrape_interval 0", "scrape_interval must be from 50ms to 1m0s, got '0', at Caddyfile:4"},
		{"scrape_interval -1s", "scrape_interval must be from 50ms to 1m0s, got '-1s', at Caddyfile:4"},
		{"scrape_interval 10h", "scrape_interval must be from 50ms to 1m0s, got '10h', at Caddyfile:4"},
		{"metrics_url a:1", "wrong argument count or unexpected line ending after 'a:1', at Caddyfile:4"},
		{"metrics_url a:1 http://b c", "wrong argument count or unexpected line ending after 'http://b', at Caddyfile:4"},
		{"metrics_url a:1 b:9090/metrics", "metrics_url must be a URL such as http://{host}:9090/metrics, at Caddyfile:4"},
		{"metrics_url a:1 ftp://b/metrics", "metrics_url must be a URL such as http://{host}:9090/metrics, at Caddyfile:4"},
		{"metrics_url a:1 http:///metrics", "metrics_url must be a URL such as http://{host}:9090/metrics, at Caddyfile:4"},
		{"metrics_url a:1 http://u:SECRET@b/", "metrics_url must have no user or password; use metrics_header Authorization, at Caddyfile:4"},
		{"metrics_url a:1 http://b/#c", "metrics_url must have no fragment, at Caddyfile:4"},
		{"metrics_url \"\" http://b", "metrics_url must name an upstream, or * for all, at Caddyfile:4"},
		{"metrics_url a:1 http://b\n\t\t\tmetrics_url http://a:1 http://c", "llm_prefix option 'metrics_url a:1' already specified, at Caddyfile:5"},
		{"metrics_header X-Key", "wrong argument count or unexpected line ending after 'X-Key', at Caddyfile:4"},
		{"metrics_header \"a b\" SECRET", "metrics_header must be the name of a header and its value, got \"a b\", at Caddyfile:4"},
		{"metrics_header X-Key \"\"", "metrics_header X-Key must have a value that a header can hold, at Caddyfile:4"},
		{"metrics_header X-Key \"SECRET\x01\"", "metrics_header X-Key must have a value that a header can hold, at Caddyfile:4"},
		{"metrics_header accept-encoding br", "metrics_header can't set Accept-Encoding, at Caddyfile:4"},
		{"metrics_header X-Key a\n\t\t\tmetrics_header x-key b", "llm_prefix option 'metrics_header X-Key' already specified, at Caddyfile:5"},
		{"retry_stale maybe", "retry_stale must be on or off, got 'maybe', at Caddyfile:4"},
		{"expose \"a b\"", "expose must be the name of a header, got \"a b\", at Caddyfile:4"},
		{"session_header \"a b\"", "session_header must be the name of a header, got \"a b\", at Caddyfile:4"},
		{"state \"\"", "state must not be empty, at Caddyfile:4"},
		{"fallback", "wrong argument count or unexpected line ending after 'fallback', at Caddyfile:4"},
		{"fallback nobody", "module not registered: http.reverse_proxy.selection_policies.nobody, at Caddyfile:4"},
	} {
		_, err := adapt(t, " {\n\t\t\t"+c.option+"\n\t\t}")
		if err == nil {
			t.Errorf("%q: no error, want %q", c.option, c.want)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.option, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: the error shows the secret: %v", c.option, err)
		}
	}
	if _, err := adapt(t, " 5"); err == nil || !strings.Contains(err.Error(), "Caddyfile:3") {
		t.Errorf("an argument of the policy: %v, want an error with its line", err)
	}
}

// JSON users get the same ranges.
func TestValidate(t *testing.T) {
	for _, c := range []struct {
		policy LLMPrefix
		want   string // empty: valid
	}{
		{LLMPrefix{}, ""},
		{LLMPrefix{Block: 64, MaxBody: 1 << 10, Memory: 1 << 20, Scrape: "off", Expose: "X-A"}, ""},
		{LLMPrefix{Block: 63}, "block"},
		{LLMPrefix{Block: -1}, "block"},
		{LLMPrefix{MaxBody: 1}, "max_body"},
		{LLMPrefix{Memory: 1 << 40}, "memory"},
		{LLMPrefix{ScrapeInterval: 1}, "scrape_interval"},
		{LLMPrefix{Scrape: "metrics"}, "scrape"},
		{LLMPrefix{Expose: "a b"}, "expose"},
		{LLMPrefix{MetricsURL: map[string]string{"*": "http://{host}:1/{env.A}"}, MetricsHeader: map[string]string{"a": "{env.B}"}}, ""},
		{LLMPrefix{MetricsURL: map[string]string{"*": "http://{env.A}:99999/"}}, ""}, // only known when it is loaded
		{LLMPrefix{MetricsURL: map[string]string{"": "http://a"}}, "metrics_url"},
		{LLMPrefix{MetricsURL: map[string]string{"*": "a"}}, "metrics_url"},
		{LLMPrefix{MetricsHeader: map[string]string{"": "a"}}, "metrics_header"},
		{LLMPrefix{MetricsHeader: map[string]string{"A": "a\n"}}, "metrics_header"},
		{LLMPrefix{MetricsHeader: map[string]string{"A": "a", "a": "b"}}, "metrics_header"},
		{LLMPrefix{MetricsHeader: map[string]string{"Connection": "close"}}, "metrics_header"},
		{LLMPrefix{Scrape: "off", MetricsHeader: map[string]string{"A": "a"}}, "metrics_url and metrics_header"},
		{LLMPrefix{Scrape: "off", MetricsURL: map[string]string{"*": "http://a"}}, "metrics_url and metrics_header"},
	} {
		err := c.policy.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want+" ") {
			t.Errorf("Validate(%+v) = %v, want an error about %q", c.policy, err, c.want)
		}
	}
}

func TestModuleIsRegistered(t *testing.T) {
	if _, err := caddy.GetModule("http.reverse_proxy.selection_policies.llm_prefix"); err != nil {
		t.Error(err)
	}
}
