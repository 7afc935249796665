package enginemetrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// tell is a page's load as text, a number a line.
func tell(p Page) string {
	var b strings.Builder
	engine := p.Engine
	if engine == "" {
		engine = "none"
	}
	fmt.Fprintf(&b, "engine   %s\n", engine)
	for _, n := range []struct {
		what string
		v    route.Num
	}{
		{"waiting", p.Load.Waiting}, {"running", p.Load.Running}, {"kv usage", p.Load.KVUsage},
		{"capacity", p.Load.CapacityTokens}, {"block", p.Load.BlockTokens},
		{"hits", p.Load.PrefixHits}, {"queries", p.Load.PrefixQueries},
		{"prompt", p.Load.PromptTokens}, {"output", p.Load.OutputTokens}, {"preempt", p.Load.Preemptions},
		{"caching", p.Load.PrefixCache}, {"awake", p.Load.Awake}, {"start", p.Load.StartTime},
	} {
		value := "unknown"
		if n.v.Known {
			value = fmt.Sprintf("%.10g", n.v.Value)
		}
		fmt.Fprintf(&b, "%-8s %s\n", n.what, value)
	}
	return b.String()
}

// Each page of testdata gives the load that stands beside it. The pages are
// examples in the form that the engine prints; go test -update rewrites the
// loads, for a reader to judge.
func TestGoldenPages(t *testing.T) {
	for path, text := range pages(t) {
		got := tell(parse(t, text))
		golden := strings.TrimSuffix(path, ".prom") + ".load"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s tells\n%s\nwant\n%s", path, got, want)
		}
	}
}
