package enginemetrics

import "bytes"

// field is one thing that engines tell, whatever they call it.
type field uint8

const (
	waiting      field = iota
	waitingElse        // requests that wait in a second queue
	running            //
	usage              // share of KV blocks in use
	usageOld           // the same, by a name that later releases changed
	usedTokens         // tokens in use, where no share is told
	capacity           // tokens
	blocks             // KV blocks in all
	blockTokens        //
	hits               // tokens
	hitsOld            // by a name that later releases changed
	hitBlocks          // where blocks are counted
	queries            // tokens
	queriesOld         // by a name that later releases changed
	missBlocks         // where blocks are counted
	promptTokens       // all, those found in the cache included
	freshTokens        // prompt tokens without those found in the cache
	outputTokens       //
	preemptions        //
	prefixCache        // 1 if it is on
	awake              // 1 if the engine is
	startTime          // Unix seconds
	fieldCount
)

// series says how to read the series of one name.
type series struct {
	field field
	// If label is set, its value tells the field.
	label  string
	values map[string]field
	// If config is set, the labels named hold the numbers.
	config map[string]field
}

// dialect is one engine's names, without prefix and without "_total", which
// some exporters put behind a counter's name and some don't.
type dialect struct {
	engine   string
	prefixes []string
	names    map[string]series
}

// An exporter that can't have a colon in a name puts an underscore there, and
// Ray puts its own name in front.
var dialects = [...]dialect{
	{"vllm", []string{"vllm:", "vllm_"}, map[string]series{
		"num_requests_waiting": {field: waiting},
		"num_requests_running": {field: running},
		// The engine before 0.9 moved requests out of the batch and let them
		// wait for room.
		"num_requests_swapped": {field: waitingElse},
		"engine_sleep_state": {label: "sleep_state", values: map[string]field{
			"awake": awake,
		}},
		// Releases 0.9.2 to 0.11 have both names.
		"kv_cache_usage_perc":      {field: usage},
		"gpu_cache_usage_perc":     {field: usageOld},
		"prefix_cache_hits":        {field: hits},
		"prefix_cache_queries":     {field: queries},
		"gpu_prefix_cache_hits":    {field: hitsOld},
		"gpu_prefix_cache_queries": {field: queriesOld},
		"prompt_tokens":            {field: promptTokens},
		"generation_tokens":        {field: outputTokens},
		"num_preemptions":          {field: preemptions},
		"cache_config_info": {config: map[string]field{
			"block_size": blockTokens, "num_gpu_blocks": blocks, "kv_cache_size_tokens": capacity,
			"enable_prefix_caching": prefixCache,
		}},
	}},
	{"sglang", []string{"sglang:", "sglang_"}, map[string]series{
		"num_queue_reqs":         {field: waiting},
		"num_grammar_queue_reqs": {field: waitingElse},
		"num_running_reqs":       {field: running},
		"token_usage":            {field: usage},
		"cached_tokens":          {field: hits},
		"prompt_tokens":          {field: promptTokens},
		"generation_tokens":      {field: outputTokens},
		"num_retracted_requests": {field: preemptions},
		"page_size":              {field: blockTokens},
		"num_pages":              {field: blocks},
		"max_total_num_tokens":   {field: capacity},
		"cache_config_info": {config: map[string]field{
			"page_size": blockTokens, "num_pages": blocks,
		}},
	}},
	{"trtllm", []string{"trtllm_", "trtllm:"}, map[string]series{
		"num_requests_waiting":      {field: waiting},
		"num_requests_running":      {field: running},
		"kv_cache_utilization":      {field: usage},
		"kv_cache_reused_blocks":    {field: hitBlocks},
		"kv_cache_missed_blocks":    {field: missBlocks},
		"kv_cache_tokens_per_block": {field: blockTokens},
		"kv_cache_max_blocks":       {field: blocks},
	}},
	{"triton", []string{"nv_trt_llm_"}, map[string]series{
		"request_metrics": {label: "request_type", values: map[string]field{
			"waiting": waiting, "scheduled": running,
		}},
		"kv_cache_block_metrics": {label: "kv_cache_block_type", values: map[string]field{
			"fraction": usage, "tokens_per": blockTokens, "max": blocks,
		}},
	}},
	{"llamacpp", []string{"llamacpp:", "llamacpp_"}, map[string]series{
		"requests_deferred":    {field: waiting},
		"requests_processing":  {field: running},
		"kv_cache_usage_ratio": {field: usage},
		"prompt_tokens_cached": {field: hits},
		"prompt_tokens":        {field: freshTokens},
		"tokens_predicted":     {field: outputTokens},
	}},
	{"tgi", []string{"tgi_"}, map[string]series{
		"queue_size":                   {field: waiting},
		"batch_current_size":           {field: running},
		"batch_current_max_tokens":     {field: usedTokens},
		"batch_max_total_tokens":       {field: capacity},
		"request_input_length_sum":     {field: promptTokens},
		"request_generated_tokens_sum": {field: outputTokens},
	}},
	{"lmdeploy", []string{"lmdeploy:", "lmdeploy_"}, ofVLLM},
	{"aphrodite", []string{"aphrodite:", "aphrodite_"}, ofVLLM},
	{"fastdeploy", []string{"fastdeploy:", "fastdeploy_"}, ofVLLM},
	{"nim", []string{bare}, ofVLLM},
}

// bare is the prefix of names that have none. They are so common that a page
// must have both gauges of the queue to be of an engine, and no name of another.
const bare = ""

func isBare(d int) bool { return dialects[d].prefixes[0] == bare }

// ofVLLM are the names of engines that have taken them over from vLLM.
var ofVLLM = map[string]series{
	"num_requests_waiting": {field: waiting},
	"num_requests_running": {field: running},
	"num_requests_swapped": {field: waitingElse},
	"gpu_cache_usage_perc": {field: usage},
	"prompt_tokens":        {field: promptTokens},
	"generation_tokens":    {field: outputTokens},
	"num_preemptions":      {field: preemptions},
	"prefix_cache_hits":    {field: hits},
	"prefix_cache_queries": {field: queries},
}

var (
	rayPrefix   = []byte("ray_")
	totalSuffix = []byte("_total")
)

// lookup finds whose name this is, and what it tells.
func lookup(name []byte) (int, series, bool) {
	name = bytes.TrimPrefix(name, rayPrefix)
	for d := range dialects {
		for _, prefix := range dialects[d].prefixes {
			if len(name) <= len(prefix) || string(name[:len(prefix)]) != prefix {
				continue
			}
			s, ok := dialects[d].names[string(bytes.TrimSuffix(name[len(prefix):], totalSuffix))]
			return d, s, ok
		}
	}
	return 0, series{}, false
}
