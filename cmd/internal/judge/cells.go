// Package judge runs llm_prefix, its rivals and the oracles over a fixed set of
// workloads and sizes, and holds what comes out against bounds.
//
// cells.go says what is run, table.go sums it up, bounds.go is what must hold.
package judge

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/cluster"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Us is the policy that is judged, and the others what it is judged by.
const (
	Us        = "llm_prefix"
	Greedy    = "oracle_ttft"
	Copying   = "oracle_rep"
	LeastConn = "least_conn"
)

const (
	preset    = "llama3.1-8b-h100"
	blockSize = 64 // tokens: a quarter of the work of 16
	requests  = 3000
)

// Workload is one of the table's, by the name that it has there.
type Workload struct {
	Name string
	Open string // what workload.Open is told, behind the file where there is one
	File string // in the data folder; empty for a generator
}

var workloads = []Workload{
	{"conversation", "", "traces/mooncake_conversation.jsonl.gz"},
	{"miniswe", ":think=1", "text/lmcache_miniswe.jsonl.gz"},
	{"taubench", ":think=0.3", "text/taubench_gpt4o_airline.json.gz"},
	{"chat", "chat", ""},
	{"agents", "agents", ""},
	{"tenants", "tenants", ""},
	{"hot", "hot", ""},
	{"flash", "flash", ""},
	{"unique", "unique", ""},
}

func (w *Workload) open(data string) string {
	if w.File != "" {
		return filepath.Join(data, filepath.FromSlash(w.File)) + w.Open
	}
	return w.Open
}

// rivals of the whole table; on the largest clusters only those that come close.
var (
	all = []string{
		"random", "round_robin", LeastConn, "p2c", "prefix_hash", "chwbl", "sglang", "smg", "llm_d", "llm_d_sticky",
		"dynamo", "dynamo_events", "aibrix", "preble", "production_stack", "lmetric", "lpwl",
	}
	nearest = []string{LeastConn, "smg", "llm_d_sticky", "dynamo_events", "preble", "lmetric", "lpwl"}
)

// part is a group of cells of the table.
type part struct {
	name      string
	workloads []string // nil for all
	replicas  []int
	shares    []float64
	seeds     int
	policies  []string
	variants  []variant
}

// variant is a cluster that isn't as it should be, and which policies see it;
// the reference is that of the part's policies without it.
type variant struct {
	name     string
	scenario cluster.Scenario
	proxies  int
	split    bool
	scrape   time.Duration
}

// mixed are the workloads of the scenarios.
var mixed = []string{"conversation", "tenants", "chat"}

// half and high are the shares of the knee that most is judged at.
const half, high = 0.55, 0.9

// parts in the order of what matters most: the time may be bounded.
func parts(short bool) []part {
	both := []float64{half, high}
	if short {
		return []part{
			{name: "oracle", workloads: []string{"conversation", "taubench", "tenants", "hot", "flash", "agents"}, replicas: []int{8},
				shares: both, seeds: 1, policies: []string{Us, Greedy, LeastConn, "lmetric"}},
			{name: "scenarios", workloads: []string{"tenants"}, replicas: []int{8}, shares: []float64{0.7}, seeds: 1,
				policies: []string{Us, Greedy}, variants: changes},
			// By seed a change that means no difference moves the mean by up to 2.6 %.
			{name: "metrics", workloads: []string{"tenants"}, replicas: []int{8}, shares: []float64{0.7}, seeds: 3,
				policies: []string{Us}, variants: metrics},
		}
	}
	return []part{
		{name: "oracle", replicas: []int{4, 8, 16}, shares: both, seeds: 3, policies: []string{Us, Greedy}},
		{name: "copying", workloads: []string{"hot"}, replicas: []int{8}, shares: both, seeds: 3, policies: []string{Us, Greedy, Copying}},
		{name: "scenarios", workloads: mixed, replicas: []int{8}, shares: []float64{0.7}, seeds: 3,
			policies: []string{Us, Greedy}, variants: changes},
		{name: "metrics", workloads: mixed, replicas: []int{8}, shares: []float64{0.7}, seeds: 3, policies: []string{Us}, variants: metrics},
		{name: "capacity", workloads: mixed, replicas: []int{8}, shares: []float64{0.7}, seeds: 3, policies: []string{Us}, variants: capacities},
		{name: "gateways", workloads: mixed, replicas: []int{8}, shares: []float64{0.7}, seeds: 3,
			policies: []string{Us, Greedy, LeastConn, "prefix_hash", "smg", "llm_d_sticky", "lmetric", "lpwl"}, variants: gateways},
		{name: "rivals", replicas: []int{4, 8, 16}, shares: both, seeds: 3, policies: append([]string{Us, Greedy, Copying}, all...)},
		{name: "oracle", replicas: []int{64}, shares: both, seeds: 3, policies: []string{Us, Greedy}},
		{name: "rivals", replicas: []int{64}, shares: both, seeds: 1, policies: append([]string{Us, Greedy}, nearest...)},
	}
}

var (
	changes = []variant{{scenario: "join"}, {scenario: "die"}, {scenario: "slow"}, {scenario: "restart"}}
	metrics = []variant{
		{}, {scenario: "metrics-missing"}, {scenario: "metrics-frozen"}, {scenario: "metrics-zero"}, {scenario: "metrics-lying"}, {scenario: "usage-missing"},
	}
	capacities = []variant{{}, {scenario: "capacity-half"}, {scenario: "capacity-double"}}
	gateways   = []variant{
		{}, {name: "2 pinned", proxies: 2}, {name: "2 split", proxies: 2, split: true},
		{name: "4 pinned", proxies: 4}, {name: "4 split", proxies: 4, split: true},
	}
)

func (v *variant) label() string {
	switch {
	case v.name != "":
		return v.name
	case v.scenario != "":
		return string(v.scenario)
	}
	return "healthy"
}

// Cell is one run of every policy on one workload.
type Cell struct {
	Part     string  `json:"part"`
	Workload string  `json:"workload"`
	Replicas int     `json:"replicas"`
	Share    float64 `json:"rate_vs_knee"`
	Seed     uint64  `json:"seed"`
	Variant  string  `json:"variant"`

	variant  variant
	policies []string
	open     string
}

// cells of a part, in order; data is the folder of the traces.
func (p *part) cells(data string) []Cell {
	variants := p.variants
	if variants == nil {
		variants = []variant{{}}
	}
	var cells []Cell
	for seed := range p.seeds {
		for _, n := range p.replicas {
			for _, share := range p.shares {
				for i := range workloads {
					w := &workloads[i]
					if p.workloads != nil && !slices.Contains(p.workloads, w.Name) {
						continue
					}
					for _, v := range variants {
						cells = append(cells, Cell{
							Part: p.name, Workload: w.Name, Replicas: n, Share: share, Seed: uint64(seed + 1), Variant: v.label(),
							variant: v, policies: p.policies, open: w.open(data),
						})
					}
				}
			}
		}
	}
	return cells
}

// engine is what the table's replicas are.
func engine() simengine.Config {
	p, _ := simengine.PresetByName(preset)
	return Engine(p.Config, blockSize, 0)
}

// Engine is a preset with blocks of another size and, unless that is 0, with
// room for so many tokens.
func Engine(c simengine.Config, blockTokens, kvTokens int) simengine.Config {
	tokens := c.KVTokens()
	if kvTokens > 0 {
		tokens = kvTokens
	}
	c.BlockSize = blockTokens
	c.Blocks = c.BlocksFor(tokens)
	c.MaxModelLen = min(c.MaxModelLen, c.KVTokens())
	return c
}
