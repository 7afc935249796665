package enginemetrics

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// What was asked of vLLM while its pages were recorded is in
// testdata/vllm/README.md: six requests with prompts of 40 to 45 tokens that
// share their beginning, 400 tokens each in reply, four at once.
func TestPagesOfVLLMItself(t *testing.T) {
	const blockTokens, blocks = 32, 129
	files, err := filepath.Glob("../../../testdata/vllm/*/metrics/*.prom")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(file)))+"/"+filepath.Base(file), func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			page, err := Parse(f, 0)
			if err != nil {
				t.Fatal(err)
			}
			if page.Engine != "vllm" {
				t.Errorf("engine = %q, want vllm", page.Engine)
			}
			l := &page.Load
			known := func(name string, n route.Num, want float64) {
				if !n.Known || n.Value != want {
					t.Errorf("%s = %+v, want %v", name, n, want)
				}
			}
			known("BlockTokens", l.BlockTokens, blockTokens)
			known("CapacityTokens", l.CapacityTokens, blockTokens*blocks)
			known("Preemptions", l.Preemptions, 0)
			known("StartTime", l.StartTime, 1.7e9)
			switch filepath.Base(file) {
			case "idle.prom":
				known("Running", l.Running, 0)
				known("Waiting", l.Waiting, 0)
				known("KVUsage", l.KVUsage, 0)
				known("PromptTokens", l.PromptTokens, 0)
			case "load.prom":
				known("Running", l.Running, 4)
				known("Waiting", l.Waiting, 2)
				// Any four of the six.
				between := func(name string, n route.Num) {
					if !n.Known || n.Value < 40+41+42+43 || n.Value > 42+43+44+45 {
						t.Errorf("%s = %+v, want that of four prompts", name, n)
					}
				}
				between("PromptTokens", l.PromptTokens)
				between("PrefixQueries", l.PrefixQueries)
				known("PrefixHits", l.PrefixHits, 3*blockTokens)
				if !l.KVUsage.Known || !(l.KVUsage.Value > 0 && l.KVUsage.Value <= 1) {
					t.Errorf("KVUsage = %+v, want a share in use", l.KVUsage)
				}
			case "after.prom":
				known("Running", l.Running, 0)
				known("Waiting", l.Waiting, 0)
				known("KVUsage", l.KVUsage, 0)
				known("PrefixQueries", l.PrefixQueries, 40+41+42+43+44+45)
				known("PrefixHits", l.PrefixHits, 5*blockTokens)
				known("OutputTokens", l.OutputTokens, 6*400)
			}
		})
	}
}
