package enginemetrics

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

const goodPage = `# HELP vllm:num_requests_running Requests in the batch.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="0",model_name="m"} 7.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
`

func parse(t *testing.T, page string) Page {
	t.Helper()
	p, err := Parse(strings.NewReader(page), 0)
	if err != nil {
		t.Fatalf("Parse(%.40q) = %v, want no error", page, err)
	}
	return p
}

func wantNum(t *testing.T, what string, got route.Num, want float64) {
	t.Helper()
	if got != route.Known(want) {
		t.Errorf("%s = %+v, want %v", what, got, want)
	}
}

func wantUnknown(t *testing.T, what string, got route.Num) {
	t.Helper()
	if got.Known {
		t.Errorf("%s = %v, want unknown", what, got.Value)
	}
}

// Each dialect's names give the same load, as far as the engine tells it.
func TestDialects(t *testing.T) {
	k := route.Known
	for _, c := range []struct {
		name, engine, page string
		want               route.Load
	}{
		{"vLLM 0.5, no engine label", "vllm", `
vllm:num_requests_running{model_name="m"} 3
vllm:num_requests_waiting{model_name="m"} 7
vllm:num_requests_swapped{model_name="m"} 1
vllm:gpu_cache_usage_perc{model_name="m"} 0.97
vllm:cache_config_info{block_size="16",num_gpu_blocks="100",sliding_window="None"} 1`,
			route.Load{Running: k(3), Waiting: k(8), KVUsage: k(0.97), CapacityTokens: k(1600), BlockTokens: k(16)}},
		{"vLLM 0.10, both names (FC-58)", "vllm", goodPage + `vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.4
vllm:gpu_prefix_cache_hits_total{engine="0"} 1
vllm:prefix_cache_hits_total{engine="0"} 5
vllm:prefix_cache_queries_total{engine="0"} 9`,
			route.Load{Running: k(3), Waiting: k(7), KVUsage: k(0.5), PrefixHits: k(5), PrefixQueries: k(9)}},
		{"vLLM 0.24", "vllm", goodPage + `process_start_time_seconds 1.7e+09
vllm:prompt_tokens_total{engine="0"} 50
vllm:prompt_tokens_created{engine="0"} 1.7e+09
vllm:prompt_tokens_by_source_total{engine="0",source="local_compute"} 40
vllm:generation_tokens_total{engine="0"} 60
vllm:num_preemptions_total{engine="0"} 2
vllm:iteration_tokens_total_sum{engine="0"} 99
vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="1500",num_gpu_blocks="100"} 1`,
			route.Load{Running: k(3), Waiting: k(7), KVUsage: k(0.5), PromptTokens: k(50), OutputTokens: k(60),
				Preemptions: k(2), CapacityTokens: k(1500), BlockTokens: k(16), StartTime: k(1.7e9)}},
		{"OpenMetrics front end without _total", "vllm", goodPage + "vllm:prefix_cache_hits 5\nvllm:prefix_cache_queries 9\n# EOF\n",
			route.Load{Running: k(3), Waiting: k(7), KVUsage: k(0.5), PrefixHits: k(5), PrefixQueries: k(9)}},
		{"Ray", "vllm", "ray_vllm:num_requests_running{WorkerId=\"a\"} 4\nray_vllm_num_requests_waiting{WorkerId=\"a\"} 10\n",
			route.Load{Running: k(4), Waiting: k(10)}},
		{"SGLang", "sglang", `
sglang:num_running_reqs{engine_type="unified",tp_rank="0"} 3
sglang:num_queue_reqs{tp_rank="0"} 6
sglang:num_grammar_queue_reqs{tp_rank="0"} 1
sglang:token_usage{tp_rank="0"} 0.5
sglang:cached_tokens_total{cache_source="device"} 4
sglang:cached_tokens_total{cache_source="host"} 1
sglang:prompt_tokens_total 9
sglang:generation_tokens_total 60
sglang:max_total_num_tokens{tp_rank="0"} 1600
sglang:page_size 1`,
			route.Load{Running: k(3), Waiting: k(7), KVUsage: k(0.5), PrefixHits: k(5), PrefixQueries: k(9),
				PromptTokens: k(9), OutputTokens: k(60), CapacityTokens: k(1600), BlockTokens: k(1)}},
		{"trtllm-serve", "trtllm", `
trtllm_num_requests_running 3
trtllm_num_requests_waiting 7
trtllm_kv_cache_utilization 0.5
trtllm_kv_cache_reused_blocks_total 5
trtllm_kv_cache_missed_blocks_total 4
trtllm_kv_cache_tokens_per_block 32
trtllm_kv_cache_max_blocks 100`,
			route.Load{Running: k(3), Waiting: k(7), KVUsage: k(0.5), PrefixHits: k(160), PrefixQueries: k(288),
				CapacityTokens: k(3200), BlockTokens: k(32)}},
		{"Triton", "triton", `
nv_trt_llm_request_metrics{model="m",request_type="scheduled",version="1"} 3
nv_trt_llm_request_metrics{model="m",request_type="waiting",version="1"} 7
nv_trt_llm_request_metrics{model="m",request_type="max",version="1"} 512
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="m"} 0.5
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="m"} 64
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="m"} 10`,
			route.Load{Running: k(3), Waiting: k(7), KVUsage: k(0.5), CapacityTokens: k(640), BlockTokens: k(64)}},
		{"llama.cpp", "llamacpp", `
llamacpp:requests_processing 3
llamacpp:requests_deferred 7
llamacpp:prompt_tokens_total 4
llamacpp:prompt_tokens_cached_total 5
llamacpp:prompt_tokens_seconds 812.5
llamacpp:tokens_predicted_total 60`,
			route.Load{Running: k(3), Waiting: k(7), PrefixHits: k(5), PrefixQueries: k(9), PromptTokens: k(9), OutputTokens: k(60)}},
		{"LMDeploy", "lmdeploy", `
lmdeploy:num_requests_finished{engine="0",model_name="m"} 9
lmdeploy:num_requests_unfinished{engine="0",model_name="m"} 10
lmdeploy:num_requests_running{engine="0",model_name="m"} 3
lmdeploy:num_requests_waiting{engine="0",model_name="m"} 7
lmdeploy:gpu_cache_usage_perc{engine="0",model_name="m"} 0.5
lmdeploy:prompt_tokens_total{engine="0",model_name="m"} 100
lmdeploy:iteration_tokens_total_sum{engine="0",model_name="m"} 5`,
			route.Load{Running: k(3), Waiting: k(7), KVUsage: k(0.5), PromptTokens: k(100)}},
		{"NIM, whose names have no prefix", "nim", `
gpu_cache_usage_perc{model_name="m"} 0.5
num_requests_running{model_name="m"} 3
num_requests_waiting{model_name="m"} 7
num_request_max{model_name="m"} 256
generation_tokens_total{model_name="m"} 100`,
			route.Load{Running: k(3), Waiting: k(7), KVUsage: k(0.5), OutputTokens: k(100)}},
		{"a name without a prefix is not enough", "", "prompt_tokens_total 5\nnum_requests_running 3\n", route.Load{}},
		{"a gateway's own names beside vLLM's", "vllm", goodPage + "num_requests_running 1\nnum_requests_waiting 0\n",
			route.Load{Running: k(3), Waiting: k(7), KVUsage: k(0.5)}},
		{"a gateway's own names beside vLLM's that can't be read", "vllm",
			"vllm:num_requests_waiting NaN\nvllm:num_requests_running 3\nnum_requests_running 1\nnum_requests_waiting 0\n",
			route.Load{Running: k(3)}},
		{"a gateway's own names beside one of vLLM's", "vllm",
			"num_requests_running 1\nnum_requests_waiting 0\nvllm:num_requests_running 3\n", route.Load{Running: k(3)}},
		{"a gateway's own names beside one of vLLM's that can't be read", "vllm",
			"num_requests_running 1\nnum_requests_waiting 0\nvllm:num_requests_waiting NaN\n", route.Load{}},
		{"a gateway's own names beside an info of vLLM's that tells nothing", "",
			"num_requests_running 1\nnum_requests_waiting 0\nvllm:cache_config_info{block_size=\"None\"} 1\n", route.Load{}},
		{"a gateway's own names beside a line of vLLM's that is too long", "vllm",
			"num_requests_running 1\nnum_requests_waiting 0\nvllm:num_requests_waiting{x=\"" + strings.Repeat("y", maxLine) + "\"} 7\n", route.Load{}},
		{"FastDeploy", "fastdeploy", "fastdeploy:num_requests_running 3\nfastdeploy:num_requests_waiting 7\n", route.Load{Running: k(3), Waiting: k(7)}},
		{"Aphrodite", "aphrodite", "aphrodite:num_requests_running 3\naphrodite:num_requests_waiting 7\n", route.Load{Running: k(3), Waiting: k(7)}},
		{"TGI", "tgi", `
tgi_queue_size 7
tgi_batch_current_size 3
tgi_batch_current_max_tokens 800
tgi_batch_max_total_tokens 1600`,
			route.Load{Running: k(3), Waiting: k(7), KVUsage: k(0.5), CapacityTokens: k(1600)}},
	} {
		p := parse(t, c.page)
		if p.Engine != c.engine || p.Load != c.want {
			t.Errorf("%s: Parse = %q %+v,\nwant %q %+v", c.name, p.Engine, p.Load, c.engine, c.want)
		}
	}
}

// FC-58: each release's name for the KV usage is read, and where both are
// there, one is used.
func TestFC58KVGaugeWasRenamed(t *testing.T) {
	for _, c := range []struct {
		name, page string
		want       float64
	}{
		{"0.5", "vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.4\nvllm:cpu_cache_usage_perc{model_name=\"m\"} 0.9\nvllm:gpu_prefix_cache_hit_rate{model_name=\"m\"} -1.0\n", 0.4},
		{"both, the old one first", "vllm:gpu_cache_usage_perc{engine=\"0\"} 0.4\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.4\n", 0.4},
		{"both, the new one first", "vllm:kv_cache_usage_perc{engine=\"0\"} 0.4\nvllm:gpu_cache_usage_perc{engine=\"0\"} 0.4\n", 0.4},
		{"new", "vllm:kv_cache_usage_perc{engine=\"0\"} 0.97\nvllm:kv_cache_usage_perc_created{engine=\"0\"} 1.7e9\n", 0.97},
	} {
		wantNum(t, c.name+": KV usage", parse(t, c.page).Load.KVUsage, c.want)
	}
	p := parse(t, "vllm:prompt_tokens_total{engine=\"0\"} 5\nvllm:prompt_tokens_created{engine=\"0\"} 1.7e9\n")
	wantNum(t, "prompt tokens beside their creation time", p.Load.PromptTokens, 5)
	p = parse(t, "vllm:gpu_prefix_cache_hits_total 1\nvllm:prefix_cache_hits_total 5\nvllm:gpu_prefix_cache_queries_total 2\nvllm:prefix_cache_queries_total 9\n")
	wantNum(t, "hits of both names", p.Load.PrefixHits, 5)
	wantNum(t, "queries of both names", p.Load.PrefixQueries, 9)
}

// FC-52: what the engine says of its cache, in words that need no parser of
// their own.
func TestFC52CacheFacts(t *testing.T) {
	info := func(labels string) route.Load {
		return parse(t, goodPage+"vllm:cache_config_info{"+labels+"} 1.0\n").Load
	}
	l := info(`block_size="16",enable_prefix_caching="False",engine="0",num_gpu_blocks="100"`)
	wantNum(t, "prefix caching switched off", l.PrefixCache, 0)
	wantNum(t, "capacity", l.CapacityTokens, 1600)
	l = info(`block_size="32",enable_prefix_caching="True",num_gpu_blocks="500"`)
	wantNum(t, "prefix caching", l.PrefixCache, 1)
	wantNum(t, "capacity of larger blocks", l.CapacityTokens, 16_000)
	l = info(`block_size="None",enable_prefix_caching="None",num_gpu_blocks="None",kv_cache_size_tokens="None"`)
	wantUnknown(t, "prefix caching", l.PrefixCache)
	wantUnknown(t, "capacity", l.CapacityTokens)
	wantNum(t, "waiting beside unknown facts", l.Waiting, 7)
}

// An engine of several that is awake answers.
func TestSleepState(t *testing.T) {
	state := func(engine int, awake string) string {
		return fmt.Sprintf("vllm:engine_sleep_state{engine=\"%d\",sleep_state=\"awake\"} %s\nvllm:engine_sleep_state{engine=\"%d\",sleep_state=\"discard_all\"} 1.0\n", engine, awake, engine)
	}
	wantUnknown(t, "awake, of a release that doesn't tell", parse(t, goodPage).Load.Awake)
	wantNum(t, "awake", parse(t, goodPage+state(0, "1.0")).Load.Awake, 1)
	wantNum(t, "awake", parse(t, goodPage+state(0, "0.0")+state(1, "0.0")).Load.Awake, 0)
	wantNum(t, "awake, one of two", parse(t, goodPage+state(0, "0.0")+state(1, "1.0")).Load.Awake, 1)
}

// FC-59: an engine whose names we don't know is unknown, never idle.
func TestFC59UnknownNamesAreUnknown(t *testing.T) {
	for _, page := range []string{
		"", "\n\n", "<html><body>Log in</body></html>\n", "{\"num_requests_waiting\": 0}\n", "[{\"iter\": 1}]",
		"404 page not found\n", "Not Found", "Internal Server Error\r\n", "OK\n",
		"python_info{version=\"3.12\"} 1.0\nprocess_start_time_seconds 1.7e9\n",
		"acme:num_requests_waiting 0\nmyvllm:num_requests_running 0\n",
		"# TYPE vllm:num_requests_waiting gauge\n",
		"vllm:num_requests_waiting_by_reason{reason=\"capacity\"} 0\n",
	} {
		p := parse(t, page)
		if p.Engine != "" || p.Load != (route.Load{}) || !p.Load.Empty() {
			t.Errorf("Parse(%q) = %+v, want no engine and nothing known", page, p)
		}
	}
	for _, page := range []string{"<html>\nfoo bar</html>\n", "{\"a\": 1}\n", "404 page not found\n", "Not Found", "please log in\n"} {
		if p := parse(t, page); p.Samples != 0 {
			t.Errorf("Samples of %q = %d, want 0: it is no metrics page", page, p.Samples)
		}
	}
	if p := parse(t, "x 1\ny{a=\"b\"} NaN\nz -Inf\n{\"q\"} .5 17\nw{} +1\n"); p.Samples != 5 {
		t.Errorf("Samples = %d, want 5", p.Samples)
	}
}

// FC-61: the queue of all engines counts once each, in any order.
func TestFC61SeveralEngines(t *testing.T) {
	waiting := func(labels string, v int) string {
		return fmt.Sprintf("vllm:num_requests_waiting{%s} %d\n", labels, v)
	}
	ranks := ""
	for i := range 8 {
		ranks += fmt.Sprintf("sglang:num_queue_reqs{dp_rank=\"0\",tp_rank=\"%d\"} 5\n", i)
	}
	for _, c := range []struct {
		name, page string
		want       float64
	}{
		{"idle first", waiting(`engine="0"`, 0) + waiting(`engine="1"`, 11), 11},
		{"idle last", waiting(`engine="1"`, 11) + waiting(`engine="0"`, 0), 11},
		{"two busy", waiting(`engine="1"`, 4) + waiting(`engine="0"`, 3), 7},
		{"eight tensor parallel ranks", ranks, 5},
		{"eight context parallel ranks", strings.ReplaceAll(ranks, "tp_rank=", `attn_cp_rank="1",tp_rank=`), 5},
		{"eight context parallel ranks of their own", strings.ReplaceAll(ranks, "tp_rank=", "attn_cp_rank="), 5},
		{"eight data parallel ranks by another name", strings.ReplaceAll(ranks, "tp_rank=", "attn_dp_rank="), 40},
		{"eight data parallel ranks in full", strings.ReplaceAll(ranks, "tp_rank=", "data_parallel_rank="), 40},
		{"eight ranks that shard what is parallel in data", strings.ReplaceAll(ranks, "tp_rank=", "fsdp_rank="), 5},
		{"one series twice", waiting(`engine="0",model_name="m"`, 11) + waiting(`model_name="m",engine="0"`, 2), 11},
		{"two models", waiting(`model_name="a"`, 1) + waiting(`model_name="b"`, 2), 3},
		{"labels that swap words", waiting(`engine="a",model_name="b"`, 1) + waiting(`engine="b",model_name="a"`, 2), 3},
	} {
		wantNum(t, c.name+": waiting", parse(t, c.page).Load.Waiting, c.want)
	}
	// An engine for each data parallel rank, that each have a tensor parallel
	// rank, in no order; SGLang counts by priority beside the whole.
	shuffled := ""
	for _, i := range []int{5, 2, 7, 0, 3, 6, 1, 4} {
		shuffled += fmt.Sprintf("sglang:num_queue_reqs{dp_rank=\"%d\",tp_rank=\"%d\",pp_rank=\"0\"} %d\n", i, i, i)
		shuffled += fmt.Sprintf("sglang:num_queue_reqs{dp_rank=\"%d\",tp_rank=\"%d\",pp_rank=\"0\",priority=\"1\"} %d\n", i, i, i/2)
	}
	wantNum(t, "waiting of eight ranks in no order", parse(t, shuffled).Load.Waiting, 28)
	p := parse(t, "vllm:kv_cache_usage_perc{engine=\"0\"} 0.9\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.1\n"+
		"vllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"10\",seed=\"a\"} 1\n"+
		"vllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"None\",seed=\"b\"} 1\n"+
		"vllm:cache_config_info{block_size=\"16\",engine=\"1\",num_gpu_blocks=\"20\"} 1\n")
	wantNum(t, "KV usage of the fullest engine", p.Load.KVUsage, 0.9)
	wantNum(t, "capacity of both engines", p.Load.CapacityTokens, 480)
	for rank, want := range map[string]float64{"dp_rank": 8000, "attn_dp_rank": 8000, "data_parallel_rank": 8000, "tp_rank": 1000} {
		infos := ""
		for i := range 8 {
			infos += fmt.Sprintf("sglang:cache_config_info{%s=\"%d\",page_size=\"10\",num_pages=\"100\"} 1\n", rank, i)
		}
		wantNum(t, "capacity of eight by "+rank, parse(t, infos).Load.CapacityTokens, want)
	}
}

// FC-65: no foreign line hides ours, in front of them or behind. The first
// five are those that a strict parser stops at.
func TestFC65ForeignFamilies(t *testing.T) {
	for _, bad := range []string{
		"# TYPE x unknown\nx 1\n",
		"# TYPE x info\nx_info{a=\"b\"} 1\n",
		"x_bucket{le=\"1\"} 1 # {trace_id=\"a\"} 0.5 1.7e9\n",
		"# TYPE x gauge\n# TYPE x counter\nx 1\n",
		"x{p=\"\\d\"} 1\n",

		"x{p=\"unterminated 1\n", "x{p=\"a,b}c\\\"d\\\\\"} 1\n", "\x00\xff\n", "x\r\n", "{\"x\"} 1\n", "{\"x\": 1}\n", "{\n", "x{\n", "{\"",
		"# HELP\n#\n# TYPE\n", "\xef\xbb\xbf# a byte order mark\n",
		"x{p=\"" + strings.Repeat("vllm:num_requests_waiting 99 ", 10_000) + "\"} 1\n",
	} {
		for _, page := range []string{bad + goodPage, goodPage + bad} {
			p := parse(t, page)
			wantNum(t, fmt.Sprintf("waiting beside %.30q", bad), p.Load.Waiting, 7)
			wantNum(t, "running", p.Load.Running, 3)
			wantNum(t, "KV usage", p.Load.KVUsage, 0.5)
		}
	}
}

// A line of ours that is too long to be read leaves its number unknown: the
// others' sum would lack it.
func TestALineOfOursTooLongIsUnknown(t *testing.T) {
	p := parse(t, goodPage+"vllm:num_requests_waiting{engine=\"1\",x=\""+strings.Repeat("y", maxLine)+"\"} 1\n")
	wantUnknown(t, "waiting", p.Load.Waiting)
	wantNum(t, "running", p.Load.Running, 3)
}

// Labels may hold all that looks like the end of a label.
func TestLabelsWithEscapes(t *testing.T) {
	p := parse(t, "vllm:num_requests_waiting{ model_name = \"a,b}\\\"c\\\\\" , engine=\"0\", } 7 1700000000 # {x=\"}\"} 1\r\n"+
		"\tvllm:num_requests_running\t3\r\nvllm:kv_cache_usage_perc{} 0.5")
	wantNum(t, "waiting", p.Load.Waiting, 7)
	wantNum(t, "running", p.Load.Running, 3)
	wantNum(t, "KV usage on a last line without end", p.Load.KVUsage, 0.5)

	// Names that a dot makes illegal are quoted, and so may be all.
	p = parse(t, "vllm:num_requests_waiting {\"service.name\"=\"a\\\"}\",engine=\"0\"} 7\n"+
		"{\"vllm:num_requests_running\",engine=\"0\"} 1\n{engine=\"1\",\"vllm:num_requests_running\"} 2 1700000000\n")
	wantNum(t, "waiting beside a quoted label", p.Load.Waiting, 7)
	wantNum(t, "running of two series with quoted names", p.Load.Running, 3)
}

// FC-67: numbers that can't be true are unknown.
func TestFC67StrangeNumbers(t *testing.T) {
	for _, s := range []string{"NaN", "+Inf", "-Inf", "-3", "1e309", "0x1p3", "18446744073709551616", "1_000", "", "3,0", "nan",
		strings.Repeat("1", 100), "Infinity", "1e", "e", "--1", "10000001", "7;", "\"7\""} {
		p := parse(t, "vllm:num_requests_running 1\nvllm:num_requests_waiting "+s+"\n")
		wantUnknown(t, "waiting of "+s, p.Load.Waiting)
		wantNum(t, "running beside "+s, p.Load.Running, 1)
	}
	wantNum(t, "waiting of 3.0e+00", parse(t, "vllm:num_requests_waiting 3.0e+00").Load.Waiting, 3)
	for s, known := range map[string]bool{"97": false, "NaN": false, "-0.1": false, "1.01": true, "5.88e-05": true} {
		got := parse(t, "vllm:kv_cache_usage_perc "+s+"\n").Load.KVUsage
		if got.Known != known || got.Value > 1 {
			t.Errorf("KV usage of %s = %+v, want known %v and at most 1", s, got, known)
		}
	}
	// A sum over the engines that could be read would be too low.
	p := parse(t, "vllm:num_requests_waiting{engine=\"0\"} 1\nvllm:num_requests_waiting{engine=\"1\"} NaN\n")
	wantUnknown(t, "waiting with one of two engines unreadable", p.Load.Waiting)
}

func TestTooManySeriesAreUnknown(t *testing.T) {
	var b strings.Builder
	for i := range maxSeries + 1 {
		fmt.Fprintf(&b, "vllm:num_requests_waiting{engine=\"%d\"} 1\n", i)
	}
	wantUnknown(t, "waiting", parse(t, b.String()).Load.Waiting)
}

// FC-64: half a page may hold half of the engines, so it tells nothing.
func TestFC64BrokenPages(t *testing.T) {
	reset := errors.New("connection reset")
	p, err := Parse(io.MultiReader(strings.NewReader(goodPage), iotest.ErrReader(reset)), 0)
	if !errors.Is(err, reset) || p != (Page{}) {
		t.Errorf("Parse(page cut off) = %+v, %v, want an empty page and %v", p, err, reset)
	}
	size := int64(len(goodPage))
	if _, err := Parse(strings.NewReader(goodPage), size-1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Parse(page past its limit) = %v, want %v", err, ErrTooLarge)
	}
	if p, err := Parse(iotest.OneByteReader(strings.NewReader(goodPage)), size); err != nil || p.Engine != "vllm" {
		t.Errorf("Parse(page of its limit) = %+v, %v, want the page", p, err)
	}
}
