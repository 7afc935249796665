package cluster

import (
	"reflect"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/rivals"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/workload"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

func open(t *testing.T, name string, requests int) *workload.Workload {
	t.Helper()
	w, err := workload.Open(name, workload.Options{Requests: requests, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// small is an engine whose cache holds a few dozen of the generators' prompts.
func small() simengine.Config { return simengine.Config{BlockSize: 64, Blocks: 2001} }

func replay(t *testing.T, w *workload.Workload, c Config, policy string) *Outcome {
	t.Helper()
	o, err := Run(w, c, Named(policy))
	if err != nil {
		t.Fatalf("%s: %v", policy, err)
	}
	return o
}

func TestSameSeedSameOutcome(t *testing.T) {
	w := open(t, "chat", 400)
	for _, p := range rivals.Names() {
		c := Config{Replicas: 3, Engine: small(), Rate: 10, Seed: 7, Scenario: "restart", Proxies: 2, Split: true}
		first, again := replay(t, w, c, p), replay(t, w, c, p)
		if !reflect.DeepEqual(first, again) {
			t.Errorf("%s: two runs of one seed differ: mean TTFT %v and %v", p, Mean(first.TTFT), Mean(again.TTFT))
		}
	}
}

// Whatever happens to engines, requests without a first token are answered.
func TestNothingIsLost(t *testing.T) {
	w := open(t, "chat", 600)
	for _, s := range Scenarios() {
		for _, p := range []string{"llm_prefix", "least_conn", "oracle_ttft"} {
			o := replay(t, w, Config{Replicas: 2, Engine: small(), Rate: 8, Scenario: Scenario(s[0])}, p)
			sent := int64(0)
			for _, n := range o.PerUpstream {
				sent += n
			}
			if sent != int64(w.Requests()) {
				t.Errorf("%s, %s: %d of %d requests were answered", s[0], p, sent, w.Requests())
			}
			if s[0] != "die" && s[0] != "restart" && o.Failed > 0 {
				t.Errorf("%s, %s: %d requests failed", s[0], p, o.Failed)
			}
		}
	}
}

// A prompt that is alone takes the engine's overhead and its prefill.
func TestLoneRequest(t *testing.T) {
	w := open(t, "unique:user=1000,spread=0", 1)
	cost := simengine.Cost{Base: 10 * time.Millisecond, PrefillToken: 20e-6, RequestOverhead: 5 * time.Millisecond}
	o := replay(t, w, Config{Replicas: 2, Engine: simengine.Config{Cost: cost}}, "round_robin")
	if len(o.TTFT) != 1 || o.TTFT[0] != 35 {
		t.Errorf("TTFT is %v ms, want the 5 of the overhead, the 10 of a step and 20 for 1000 tokens", o.TTFT)
	}
}

// The second of two equal prompts finds the first's blocks.
func TestPrefixesAreShared(t *testing.T) {
	w := open(t, "hot:system=6400,user=1", 2)
	o := replay(t, w, Config{Replicas: 1, Engine: small(), Rate: 0.1, Warmup: 0.5}, "round_robin")
	if o.CachedTokens != 6400 {
		t.Errorf("%d tokens are cached, want the 6400 of the system prompt", o.CachedTokens)
	}
}

func TestBadConfigs(t *testing.T) {
	w := open(t, "unique", 5)
	for _, c := range []Config{
		{Replicas: 5000}, {Proxies: 65}, {Rate: -1}, {Warmup: 1}, {ScrapeInterval: time.Millisecond},
		{Scenario: "earthquake"}, {Engine: simengine.Config{Blocks: 1}},
	} {
		if _, err := Run(w, c, Named("random")); err == nil {
			t.Errorf("config %+v is accepted", c)
		}
	}
	for _, p := range []string{"", "nobody", "llm_prefix:block", "llm_prefix:block=x", "llm_prefix:block=0", "chwbl:vnodes=0", "random:speed=2"} {
		if _, err := Run(w, Config{}, Named(p)); err == nil {
			t.Errorf("policy %q is accepted", p)
		}
	}
}
