package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/kvevents"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmapi"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

const (
	defaultPreset = "llama3.1-8b-h100"
	maxServers    = 1024
	maxSpeed      = live.SpeedMax
)

// options are the flags.
type options struct {
	listen    string
	count     int
	model     string
	served    []string
	preset    string
	speed     float64
	profile   string
	faults    string
	admin     string
	kvEvents  string
	events    kvevents.Config // of kvEvents
	engines   int             // data-parallel, of one server
	slots     int             // for adapters
	seed      uint64
	keepAlive time.Duration
	keys      []string
	noDetails bool
	policy    string // of the scheduler
	devMode   bool
	loadLoRA  bool
	reasoning bool
	noTools   bool

	// What overrides the preset; only flags that were given do.
	blockSize, kvTokens, maxSeqs, maxBatched, maxModelLen int
	stepBase, overhead                                    time.Duration
	prefill, decode, contextNS, attention                 float64
	noCaching, async                                      bool
	longPrefill                                           int
	longPrefillAdaptive                                   bool
	watermark                                             float64
	maxQueued                                             int
}

func newRoot() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:           "vllmsim",
		Short:         "Serves simulated vLLM servers",
		Long:          long,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			engine, err := o.engine(cmd.Flags())
			if err != nil {
				return err
			}
			return serve(cmd.Context(), &o, engine, cmd.OutOrStdout())
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *options) register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&o.listen, "listen", "127.0.0.1:9101", "address of the first server; the others have the next ports; port 0 gives each a free one")
	f.IntVar(&o.count, "count", 3, fmt.Sprintf("servers, 1 to %d", maxServers))
	f.StringVar(&o.model, "model", "", "name of the model; the preset's if empty")
	f.StringSliceVar(&o.served, "adapter", nil, "LoRA adapters: further names, each with a prefix cache of its own; may be repeated")
	f.IntVar(&o.slots, "max-loras", 1, "adapters in a batch; requests for others are passed over meanwhile")
	f.StringVar(&o.preset, "preset", defaultPreset, "model and hardware: "+strings.Join(presetNames(), ", ")+"; or a .json file that llmreplay fit wrote")
	f.Float64Var(&o.speed, "speed", 1, "seconds of the engine's time in one of the clock, more than 0 and at most 10000")
	f.StringVar(&o.profile, "profile", string(vllmmetrics.Main), "vLLM version whose metrics, KV events, silence about misses and /version are shown: "+strings.Join(profileNames(), ", "))
	f.IntVar(&o.engines, "data-parallel-size", 1, fmt.Sprintf("engines behind each server's internal balancer, 1 to %d", live.RanksMax))
	f.StringVar(&o.faults, "faults", "", "file of what goes wrong, in YAML or JSON: see above")
	f.StringVar(&o.kvEvents, "kv-events-config", "", "KV events over ZeroMQ, in the JSON that vLLM takes; ports are one higher for each further engine of each server")
	f.StringVar(&o.admin, "admin", "", "address at which faults can be changed while servers run: see above; none if empty")
	f.Uint64Var(&o.seed, "seed", 1, "decides what replies say and how long they are")
	f.DurationVar(&o.keepAlive, "keep-alive", vllmapi.DefaultKeepAlive, "idle connections are closed after it")
	f.StringSliceVar(&o.keys, "api-key", nil, "keys of which requests under /v1 must give one; may be repeated; nobody is asked if there is none")
	f.BoolVar(&o.devMode, "dev-mode", false, "serve what VLLM_SERVER_DEV_MODE=1 does: /sleep, /wake_up, /pause, /resume, resets of caches")
	f.BoolVar(&o.loadLoRA, "allow-runtime-lora", false, "serve /v1/load_lora_adapter and its contrary, as VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 does")
	f.BoolVar(&o.reasoning, "reasoning", false, "think before answers to chats, and tell it apart, as --reasoning-parser does")
	f.BoolVar(&o.noTools, "no-tool-parser", false, "refuse tools that a client wants called, as vLLM does without --enable-auto-tool-choice")
	f.BoolVar(&o.noDetails, "no-prompt-tokens-details", false, "leave cached_tokens out of usage, as vLLM does by default")

	f.IntVar(&o.blockSize, "block-size", 0, "tokens in a KV block")
	f.IntVar(&o.kvTokens, "kv-tokens", 0, "tokens that a KV cache holds; rounded up to whole blocks")
	f.IntVar(&o.maxSeqs, "max-num-seqs", 0, "sequences in a batch")
	f.IntVar(&o.maxBatched, "max-num-batched-tokens", 0, "tokens of a step")
	f.IntVar(&o.maxModelLen, "max-model-len", 0, "tokens of a prompt and its reply; at most the cache holds")
	f.BoolVar(&o.noCaching, "no-enable-prefix-caching", false, "make every prompt a cold one")
	f.BoolVar(&o.async, "async-scheduling", false, "compose each step while the one before it is computed; if not given, as the version of --profile does: since 0.14")
	f.IntVar(&o.longPrefill, "long-prefill-token-threshold", 0, "most tokens of one prompt in a step, while there are others; 0 for no bound")
	f.BoolVar(&o.longPrefillAdaptive, "long-prefill-token-threshold-adaptive", false, "raise that to an even share of the step")
	f.IntVar(&o.maxQueued, "max-num-queued-reqs", 0, "requests that run or wait; those beyond get 503; 0 for no bound")
	f.Float64Var(&o.watermark, "watermark", 0, "share of the KV blocks to keep free when a request is let in beside others, 0 or more and less than 1")
	f.StringVar(&o.policy, "scheduling-policy", "fcfs", "order of the queue: fcfs or priority")
	f.DurationVar(&o.stepBase, "step-base", 0, "time of a step that does next to nothing")
	f.DurationVar(&o.overhead, "request-overhead", 0, "time of a request before the engine sees it")
	f.Float64Var(&o.prefill, "prefill-us-per-token", 0, "microseconds of a step for each prompt token")
	f.Float64Var(&o.decode, "decode-us-per-seq", 0, "microseconds of a step for each decoding sequence")
	f.Float64Var(&o.contextNS, "context-ns-per-token", 0, "nanoseconds of a step for each token that decoding sequences look back on")
	f.Float64Var(&o.attention, "attention-ns", 0, "nanoseconds for each pair of a prompt token and one before it")
}

func presetNames() []string {
	var names []string
	for _, p := range simengine.Presets() {
		names = append(names, p.Name)
	}
	return names
}

func profileNames() []string {
	var names []string
	for _, p := range vllmmetrics.Profiles() {
		names = append(names, string(p))
	}
	return names
}

// readEvents reads --kv-events-config.
func (o *options) readEvents() error {
	if o.kvEvents == "" {
		return nil
	}
	var err error
	if o.events, err = kvevents.ParseConfig(o.kvEvents); err != nil {
		return fmt.Errorf("checking --kv-events-config: %w", err)
	}
	if _, known := eventFormats[vllmmetrics.Profile(o.profile)]; o.events.Publishes() && !known {
		return fmt.Errorf("checking --kv-events-config: %s has no KV events", o.profile)
	}
	return nil
}

// eventFormats are those of the profiles' versions.
var eventFormats = map[vllmmetrics.Profile]kvevents.Format{
	vllmmetrics.V09: kvevents.V09, vllmmetrics.V011: kvevents.V011, vllmmetrics.V019: kvevents.V019,
	vllmmetrics.Main: kvevents.V024, vllmmetrics.Rust: kvevents.V024,
}
