package caddyllm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// policyOf is the selection policy in a config.
func policyOf(t *testing.T, config []byte) string {
	t.Helper()
	const key = `"selection_policy":`
	_, after, ok := strings.Cut(string(config), key)
	if !ok {
		t.Fatalf("no selection policy in %s", config)
	}
	var raw json.RawMessage
	if err := json.NewDecoder(strings.NewReader(after)).Decode(&raw); err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// grammarCases are Caddyfiles, each by what it shows. Where the text has no site
// it is what stands behind "lb_policy llm_prefix".
var grammarCases = []struct{ shows, text string }{
	{"the one line", ""},
	{"an empty block", " {\n}"},
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
	secret {env.SECRET}
	session_header x-session-id
	expose x-llm-route
	fallback header X-User {
		fallback round_robin
	}
}`},
	{"scrape off", " {\n\tscrape off\n}"},
	{"sizes without a unit, of thousands and of 1024", " {\n\tblock 1024\n\tmax_body 2MB\n\tmemory 2MiB\n}"},
	{"durations of days are too long, of minutes not", " {\n\tscrape_interval 1m\n}"},
	{"retry_stale on is the default, and kept", " {\n\tretry_stale on\n}"},
	{"a fallback in one line", " {\n\tfallback least_conn\n}"},
	{"a fallback with arguments", " {\n\tfallback random_choose 3\n}"},
	{"a fallback that is of this kind", " {\n\tfallback llm_prefix {\n\t\tstate other\n\t}\n}"},
	{"as a fallback itself", "(site)\n:8080 {\n\treverse_proxy a:1 b:1 {\n\t\tlb_policy header X-Upstream {\n\t\t\tfallback llm_prefix {\n\t\t\t\tblock 128\n\t\t\t}\n\t\t}\n\t}\n}"},
	{"a snippet with arguments", "(site)\n(llm) {\n\tlb_policy llm_prefix {\n\t\tstate {args[0]}\n\t\tblock {args[1]}\n\t}\n}\n:8080 {\n\treverse_proxy a:1 {\n\t\timport llm chat 512\n\t}\n}"},
	{"the environment, when the file is read", " {\n\tstate {$LLM_STATE:fallen-back}\n}"},
	{"comments and quotes", " {\n\t# why\n\tstate \"a b\" # so\n}"},

	{"an argument of the policy", " 5"},
	{"an argument before a block", " chat {\n\tblock 512\n}"},
	{"a word that is none", " {\n\tnonsense 5\n}"},
	{"a word that is none, alone", " {\n\tnonsense\n}"},
	{"a word in capitals", " {\n\tBlock 512\n}"},
	{"a block where none belongs", " {\n\tblock 512 {\n\t\tstate a\n\t}\n}"},
	{"a block that isn't closed", "(site)\n:8080 {\n\treverse_proxy a:1 {\n\t\tlb_policy llm_prefix {\n\t\t\tblock 512\n"},
	{"an error in a snippet", "(site)\n(llm) {\n\tlb_policy llm_prefix {\n\t\tblock {args[0]}\n\t}\n}\n:8080 {\n\treverse_proxy a:1 {\n\t\timport llm 5\n\t}\n}"},
	{"too small", " {\n\tblock 16\n}"},
	{"no size", " {\n\tblock many\n}"},
	{"a unit that is none", " {\n\tmemory 10XB\n}"},
	{"nothing", " {\n\tmax_body 0\n}"},
	{"too large", " {\n\tmax_body 1TiB\n}"},
	{"beyond all numbers", " {\n\tmemory 99999999999999999999TiB\n}"},
	{"negative", " {\n\tmemory -1\n}"},
	{"no path", " {\n\tscrape metrics\n}"},
	{"a duration without a unit", " {\n\tscrape_interval 5\n}"},
	{"too often", " {\n\tscrape_interval 1ms\n}"},
	{"all the time", " {\n\tscrape_interval 0\n}"},
	{"before now", " {\n\tscrape_interval -1s\n}"},
	{"too seldom", " {\n\tscrape_interval 10h\n}"},
	{"a URL without a scheme", " {\n\tmetrics_url a:1 b:9090/metrics\n}"},
	{"a URL of another scheme", " {\n\tmetrics_url a:1 ftp://b/metrics\n}"},
	{"a URL without a host", " {\n\tmetrics_url a:1 http:///metrics\n}"},
	{"a URL with a password", " {\n\tmetrics_url a:1 http://u:SECRET@b/\n}"},
	{"a URL with a fragment", " {\n\tmetrics_url a:1 http://b/#c\n}"},
	{"a URL of nobody", " {\n\tmetrics_url \"\" http://b\n}"},
	{"a URL twice, by the upstream's two names", " {\n\tmetrics_url a:1 http://b\n\tmetrics_url http://a:1 http://c\n}"},
	{"a header that is none", " {\n\tmetrics_header \"a b\" SECRET\n}"},
	{"a header without a value", " {\n\tmetrics_header X-Key \"\"\n}"},
	{"a value that no header can hold", " {\n\tmetrics_header X-Key \"SECRET\x01\"\n}"},
	{"a header that isn't the user's", " {\n\tmetrics_header accept-encoding br\n}"},
	{"a header twice, in two spellings", " {\n\tmetrics_header X-Key SECRET\n\tmetrics_header x-key SECRET\n}"},
	{"a path with a query", " {\n\tscrape /metrics?model=a\n}"},
	{"a host for a path", " {\n\tscrape //gpu1/metrics\n}"},
	{"neither on nor off", " {\n\tretry_stale maybe\n}"},
	{"the name of no header", " {\n\texpose \"a b\"\n}"},
	{"the name of a header that the answer needs", " {\n\texpose content-length\n}"},
	{"a session in no header", " {\n\tsession_header \"a b\"\n}"},
	{"a fallback that isn't there", " {\n\tfallback nobody\n}"},
	{"a fallback with a mistake", " {\n\tfallback llm_prefix {\n\t\tblock 5\n\t}\n}"},
}

// FC-92: the whole grammar, and each mistake with its place and its words. What
// is taken adapts to one JSON, which Caddy takes as well and which comes out of
// it as it was.
func TestFC92CaddyfileGrammar(t *testing.T) {
	t.Setenv("SECRET", "s")
	t.Setenv("METRICS", "m")
	t.Setenv("KEY", "k")
	cases := slices.Clone(grammarCases)
	all := append(slices.Sorted(maps.Keys(options)), slices.Sorted(maps.Keys(pairOptions))...)
	all = append(all, "fallback")
	for _, option := range all {
		value := map[string]string{"fallback": "random", "retry_stale": "on", "scrape": "/m", "scrape_interval": "1s", "metrics_url": "a:1 http://b", "metrics_header": "X-A SECRET", "secret": "SECRET"}[option]
		if value == "" {
			value = "4096"
		}
		if option == "memory" {
			value = "2MiB"
		}
		if !strings.Contains(grammarCases[2].text, "\t"+option+" ") {
			t.Errorf("the option %s isn't among everything", option)
		}
		cases = append(cases,
			struct{ shows, text string }{option + " without a value", " {\n\t" + option + "\n}"},
			struct{ shows, text string }{option + " with an empty one", " {\n\t" + option + " \"\"\n}"},
			struct{ shows, text string }{option + " with a value too many", " {\n\t" + option + " " + value + " more\n}"},
			struct{ shows, text string }{option + " twice", " {\n\t" + option + " " + value + "\n\t" + option + " " + value + "\n}"})
	}
	var got strings.Builder
	for _, c := range cases {
		site, whole := strings.CutPrefix(c.text, "(site)\n")
		if !whole {
			site = ":8080 {\n\treverse_proxy a:1 b:1 {\n\t\tlb_policy llm_prefix" + strings.ReplaceAll(c.text, "\n", "\n\t\t") + "\n\t}\n}\n"
		}
		shown := strings.TrimPrefix(c.text, "(site)\n")
		if !whole {
			shown = "lb_policy llm_prefix" + c.text
		}
		fmt.Fprintf(&got, "-- %s\n%s\n", c.shows, strings.TrimSuffix(strings.ReplaceAll(shown, "\x01", "\\x01"), "\n"))
		adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(site), map[string]any{"filename": "Caddyfile"})
		if err != nil {
			fmt.Fprintf(&got, "=> refused: %v\n\n", err)
			if strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%s: the error shows the secret: %v", c.shows, err)
			}
			if !strings.Contains(err.Error(), "Caddyfile:") {
				t.Errorf("%s: the error has no line: %v", c.shows, err)
			}
			continue
		}
		policy := policyOf(t, adapted)
		fmt.Fprintf(&got, "=> %s\n\n", policy)
		var config caddy.Config
		if err := json.Unmarshal(adapted, &config); err != nil {
			t.Fatal(err)
		}
		if err := caddy.Validate(&config); err != nil {
			t.Errorf("%s: what it adapts to is refused: %v", c.shows, err)
		}
		checkRoundTrip(t, c.shows, policy)
	}
	golden(t, "grammar.txt", got.String())
}

// checkRoundTrip reads a policy's JSON as strictly as Caddy does, and writes it
// again.
func checkRoundTrip(t *testing.T, name, policy string) {
	t.Helper()
	var want, got map[string]any
	if err := json.Unmarshal([]byte(policy), &want); err != nil {
		t.Fatal(err)
	}
	if want["policy"] != "llm_prefix" {
		return // it is the fallback of another
	}
	delete(want, "policy")
	plain, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var p LLMPrefix
	strict := json.NewDecoder(bytes.NewReader(plain))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&p); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	again, err := json.Marshal(&p)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %s comes out as %s", name, plain, again)
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
