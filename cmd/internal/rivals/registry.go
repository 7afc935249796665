package rivals

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// settings are the numbers of a policy's configuration by name.
type settings map[string]float64

// Info describes a policy to people.
type Info struct {
	Name     string
	About    string
	Settings settings // with their defaults
	make     func(Env, settings) Policy
}

// Usage is the settings with their defaults, as they may stand behind the name.
func (i *Info) Usage() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(i.Settings)) {
		parts = append(parts, fmt.Sprintf("%s=%g", k, i.Settings[k]))
	}
	return strings.Join(parts, ",")
}

// All lists the policies.
func All() []Info { return slices.Clone(registry) }

// New makes the policy of a name that may carry settings, as in
// "llm_d:queue=2,kv=2,prefix=3".
func New(name string, env Env) (Policy, error) {
	kind, rest, _ := strings.Cut(name, ":")
	i := slices.IndexFunc(registry, func(i Info) bool { return i.Name == kind })
	if i < 0 {
		return nil, fmt.Errorf("unknown policy %q, known are %s", kind, strings.Join(Names(), ", "))
	}
	info := &registry[i]
	set := maps.Clone(info.Settings)
	if rest != "" {
		for part := range strings.SplitSeq(rest, ",") {
			key, value, ok := strings.Cut(part, "=")
			if _, known := set[key]; !ok || !known {
				return nil, fmt.Errorf("policy %s has no setting %q, only %q", kind, part, info.Usage())
			}
			v, err := strconv.ParseFloat(value, 64)
			if err != nil || !(v >= -1e9 && v <= 1e9) {
				return nil, fmt.Errorf("policy %s: %s is %q, want a number", kind, key, value)
			}
			if v < 1 && slices.Contains(counts, key) {
				return nil, fmt.Errorf("policy %s: %s is %g, want at least 1", kind, key, v)
			}
			set[key] = v
		}
	}
	return info.make(env, set), nil
}

// counts are the settings that are numbers or lengths of things.
var counts = []string{"block", "blocks", "bytes", "key", "vnodes", "window", "chars"}

// Names lists the policies' names.
func Names() []string {
	var all []string
	for _, i := range registry {
		all = append(all, i.Name)
	}
	return all
}

// Split cuts a list of policies at the commas that separate them, and not at
// those between settings: "llm_d:queue=1,kv=1,random" are two.
func Split(list string) []string {
	var all []string
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		if n := len(all); n > 0 && strings.Contains(part, "=") && !strings.Contains(part, ":") && strings.Contains(all[n-1], ":") {
			all[n-1] += "," + part
		} else if part != "" {
			all = append(all, part)
		}
	}
	return all
}

// registry in the order of reports.
var registry = []Info{
	{"llm_prefix", "this project's decision", settings{"block": 256}, newLLMPrefix},
	{"random", "any", nil, newRandom},
	{"round_robin", "one after the other", nil, newRoundRobin},
	{"least_conn", "fewest own requests in flight", nil, newLeastConn},
	{"p2c", "the less loaded of two", nil, newP2C},
	{"prefix_hash", "smg's prefix_hash: a ring lookup of the first kilobyte with a bound of load", settings{"bytes": 1024, "factor": 1.25, "abs": 10}, newPrefixHash},
	{"chwbl", "KubeAI: consistent hashing with bounded loads", settings{"key": 100, "factor": 1.25, "vnodes": 256, "user": 1}, newCHWBL},
	{"sglang", "SGLang's cache_aware", settings{"threshold": 0.3, "abs": 64, "rel": 1.5, "chars": 67_108_864, "smallest": 0}, newSGLang},
	{"smg", "Shepherd Model Gateway's cache_aware", settings{"threshold": 0.3, "abs": 64, "rel": 1.5, "chars": 67_108_864}, newSMG},
	{"llm_d", "llm-d's default profile", settings{"queue": 2, "kv": 2, "prefix": 3, "scrape_ms": 50}, newLLMD},
	{"llm_d_sticky", "llm-d's recommended configuration of 2026", settings{"match": 0.8, "wait_s": 18, "rate": 15928, "scrape_ms": 50}, newLLMDSticky},
	{"dynamo", "NVIDIA Dynamo's KV router, approximate mode", settings{"prefill": 1, "ttl_s": 120, "events": 0}, newDynamo},
	{"dynamo_events", "the same with the engines' KV events", settings{"prefill": 1, "ttl_s": 120, "events": 1}, newDynamo},
	{"aibrix", "AIBrix's prefix-cache", settings{"block": 128, "blocks": 200_000, "gap": 8, "sigma": 1}, newAIBrix},
	{"preble", "Preble's E2", settings{"balance": 1.5, "prefill_us": 16, "decode_us": 100}, newPreble},
	{"production_stack", "prefixaware of vLLM's production stack", nil, newProductionStack},
	{"lmetric", "LMetric: (queued + new prefill tokens) x (requests in flight + 1)", nil, newLMetric},
	{"lpwl", "least prefill work left: queued + new prefill tokens", nil, newLPWL},
	{"oracle_ttft", "not a proxy: the true soonest first token", nil, newOracle},
	{"oracle_rep", "not a proxy: the same, with its own prefill counted again and popular prefixes copied", settings{"alpha": 8, "window": 25, "spare": 0, "own": 1}, newReplicating},
}
