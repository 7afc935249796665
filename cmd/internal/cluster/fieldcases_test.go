package cluster

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/rivals"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/workload"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// pinned sends each conversation to one upstream for good.
type pinned struct{ rivals.Policy }

func (pinned) Pick(_ time.Duration, q *rivals.Request, targets []rivals.Target) int {
	return int(q.UserKey(64) % uint64(len(targets)))
}

func pinning(env rivals.Env) (rivals.Policy, error) {
	p, err := rivals.New("round_robin", env)
	return pinned{p}, err
}

func cachedRatio(o *Outcome) float64 { return float64(o.CachedTokens) / float64(o.PromptTokens) }

func p99(sorted []float64) float64 { return sorted[len(sorted)*99/100] }

// FC-50: turns of conversations, recorded and made, on engines whose caches are
// a quarter of what there is: nearly the hits of pinning each conversation, and
// the queues of balancing.
func TestFC50MultiTurnTraces(t *testing.T) {
	const recorded = "../../../../shared/data/text/taubench_gpt4o_airline.json.gz"
	for _, c := range []struct {
		trace string
		rate  float64
	}{{recorded + ":think=2", 60}, {"chat:think=4", 40}} {
		w, err := workload.Open(c.trace, workload.Options{Requests: 2500, Rate: c.rate, Seed: 1})
		if errors.Is(err, fs.ErrNotExist) {
			t.Logf("left out: there is no %s", recorded)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		distinct := make(map[uint64]bool)
		for i := range w.Sessions {
			for j := range w.Sessions[i].Turns {
				turn := &w.Sessions[i].Turns[j]
				for _, h := range turn.Content.Tokens(64)[:turn.Prompt/64] {
					distinct[h] = true
				}
			}
		}
		config := Config{Replicas: 4, Engine: simengine.Config{BlockSize: 64, Blocks: max(len(distinct)/4, 600) + 1}, Rate: c.rate}
		run := func(m Maker) *Outcome {
			o, err := Run(w, config, m)
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		us, pin := run(Named("llm_prefix")), run(pinning)
		random, least := run(Named("random")), run(Named("least_conn"))
		got, pinnedRatio, randomRatio := cachedRatio(us), cachedRatio(pin), cachedRatio(random)
		// Where all prompts begin alike, even random finds three quarters cached,
		// and 1.5 times as much isn't there to be had.
		if got < 0.9*pinnedRatio || got < min(1.5*randomRatio, 0.98*pinnedRatio) {
			t.Errorf("%s: %.3f of the prompt tokens are cached, %.3f with pinning, %.3f at random", c.trace, got, pinnedRatio, randomRatio)
		}
		if p99(us.TTFT) > p99(least.TTFT) {
			t.Errorf("%s: p99 TTFT is %.0f ms, least_conn's %.0f", c.trace, p99(us.TTFT), p99(least.TTFT))
		}
		sum := int64(0)
		for _, n := range us.PerUpstream {
			sum += n
		}
		if most := slices.Max(us.PerUpstream); float64(most)*4/float64(sum) > 1.3 {
			t.Errorf("%s: the upstreams get %v, want at most 1.3 of the mean", c.trace, us.PerUpstream)
		}
	}
}

// FC-51: a belief far beyond what engines hold must not trade queues for hits
// that never come: five hundred beginnings in rotation, of which a cache holds
// six, while pages tell four times the capacity, or nothing.
func TestFC51BeliefLargerThanTheCache(t *testing.T) {
	w := open(t, "tenants:prompts=500,zipf=0,system=600,user=100,output=20", 4000)
	engine := simengine.Config{BlockSize: 64, Blocks: 65, MaxModelLen: 4096}
	for _, wrong := range []Scenario{"capacity-fourfold", "metrics-missing"} {
		c := Config{Replicas: 4, Engine: engine, Rate: 300, Scenario: wrong} // three times what they can
		us, least := replay(t, w, c, "llm_prefix"), replay(t, w, c, "least_conn")
		if throughput := least.Duration.Seconds() / us.Duration.Seconds(); throughput < 0.95 {
			t.Errorf("%s: throughput is %.3f of least_conn's, want 0.95", wrong, throughput)
		}
		c.Rate = 60
		us, least = replay(t, w, c, "llm_prefix"), replay(t, w, c, "least_conn")
		if a, b := Mean(us.E2E), Mean(least.E2E); a > 1.05*b {
			t.Errorf("%s: below saturation requests take %.0f ms, %.0f with least_conn", wrong, a, b)
		}
	}
}
