package enginemetrics

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// twin reads the queue with the parser of Prometheus itself.
func twin(t *testing.T, page string) (waiting, running route.Num) {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatalf("the twin refuses the page: %v", err)
	}
	sum := func(name string) route.Num {
		var n route.Num
		for _, m := range families[name].GetMetric() {
			n = route.Known(n.Value + m.GetGauge().GetValue())
		}
		return n
	}
	return sum("vllm:num_requests_waiting"), sum("vllm:num_requests_running")
}

// A page that the strict parser takes is read alike.
func TestAgreesWithStrictParser(t *testing.T) {
	names := []string{"m", "a,b", "c}d", `e\"f`, `g\\`, `h\ni`, "ü {", ""}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		for _, name := range []string{"vllm:other", "vllm:num_requests_waiting", "vllm:num_requests_running", "x"} {
			fmt.Fprintf(&b, "# HELP %s About \\n it {\n# TYPE %s gauge\n", name, name)
			for engine := range rnd.IntN(5) {
				fmt.Fprintf(&b, "%s{engine=\"%d\",model_name=\"%s\"} %g\n", name, engine, names[rnd.IntN(len(names))], float64(rnd.IntN(1000)))
			}
		}
		waiting, running := twin(t, b.String())
		got := parse(t, b.String()).Load
		if got.Waiting != waiting || got.Running != running {
			t.Fatalf("seed %d: Parse = %+v waiting, %+v running, want %+v, %+v of\n%s", seed, got.Waiting, got.Running, waiting, running, &b)
		}
	}
}

// Pages that vLLM itself wrote are such.
func TestAgreesWithStrictParserOnRecordings(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/vllm/*/metrics/*.prom")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		waiting, running := twin(t, string(text))
		if got := parse(t, string(text)).Load; got.Waiting != waiting || got.Running != running {
			t.Errorf("%s: %+v waiting, %+v running, want %+v, %+v", file, got.Waiting, got.Running, waiting, running)
		}
	}
}

// pages are those of testdata, by file.
func pages(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/pages/*.prom")
	if err != nil || len(files) < 15 {
		t.Fatalf("found %d pages, %v, want 15 at least", len(files), err)
	}
	all := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[file] = string(text)
	}
	return all
}

// Any bytes give a load in bounds, and the same in one piece or in many.
func FuzzParse(f *testing.F) {
	for _, s := range []string{goodPage, "vllm:num_requests_waiting{", "vllm:num_requests_waiting{a=\"\\", "ray_", "vllm:", "_total 1",
		"{\"vllm:num_requests_waiting\",a=\"b\"} 1", "{\"a\"=\"b\"", "vllm:cache_config_info{enable_prefix_caching=\"False\"} 1",
		"nv_trt_llm_request_metrics{request_type=\"waiting\"} 1", "vllm:cache_config_info{block_size=\"16\"", "tgi_queue_size 1e9 # {",
		"tgi_batch_current_max_tokens 5\ntgi_batch_max_total_tokens 0"} {
		f.Add(s)
	}
	for _, page := range pages(f) {
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, page string) {
		p, err := Parse(strings.NewReader(page), 0)
		if err != nil {
			t.Fatalf("Parse(%q) = %v, want no error", page, err)
		}
		l := p.Load
		for _, n := range []route.Num{l.Waiting, l.Running, l.KVUsage, l.CapacityTokens, l.BlockTokens, l.PrefixHits,
			l.PrefixQueries, l.PromptTokens, l.OutputTokens, l.Preemptions, l.PrefixCache, l.Awake, l.StartTime} {
			if !(n.Value >= 0) || n.Value > maxTotal*maxTotal*maxSeries || !n.Known && n.Value != 0 {
				t.Errorf("Parse(%q) has %+v, want a number in bounds or none", page, n)
			}
		}
		if l.KVUsage.Value > 1 {
			t.Errorf("Parse(%q) has KV usage %v, want at most 1", page, l.KVUsage.Value)
		}
		again, err := Parse(struct{ io.Reader }{io.MultiReader(strings.NewReader(page[:len(page)/2]), strings.NewReader(page[len(page)/2:]))}, 0)
		if err != nil || again != p {
			t.Errorf("Parse(%q) in two pieces = %+v, %v, want %+v", page, again, err, p)
		}
	})
}

func bigPage() string {
	var b strings.Builder
	b.WriteString(goodPage)
	b.WriteString("vllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"100\"} 1\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"%d\",model_name=\"m\"} 12.0\n", i)
	}
	return b.String()
}

// Buffers are reused, so that a page costs no garbage. The pool they come from
// is left out, as it drops some of them under the race detector.
func TestParserAllocatesNothing(t *testing.T) {
	page := bigPage()
	r := strings.NewReader("")
	p := parsers.New().(*parser)
	got := testing.AllocsPerRun(100, func() {
		r.Reset(page)
		if got, err := p.read(r, DefaultLimit); err != nil || got.Engine != "vllm" {
			t.Errorf("reading the page = %+v, %v, want vLLM's load", got, err)
		}
	})
	if got > 0 {
		t.Errorf("reading a page allocates %v times, want 0", got)
	}
}

func BenchmarkParse(b *testing.B) {
	page := bigPage()
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	r := strings.NewReader("")
	for b.Loop() {
		r.Reset(page)
		if _, err := Parse(r, 0); err != nil {
			b.Fatal(err)
		}
	}
}
