package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/fit"
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
	f.IntVar(&o.slots, "max-loras", 1, "max_lora that metrics tell of a server with adapters")
	f.StringVar(&o.preset, "preset", defaultPreset, "model and hardware: "+strings.Join(presetNames(), ", ")+"; or a .json file that llmreplay fit wrote")
	f.Float64Var(&o.speed, "speed", 1, "seconds of the engine's time in one of the clock, more than 0 and at most 10000")
	f.StringVar(&o.profile, "profile", string(vllmmetrics.Main), "vLLM version whose metrics, KV events, silence about misses and /version are shown: "+strings.Join(profileNames(), ", "))
	f.IntVar(&o.engines, "data-parallel-size", 1, fmt.Sprintf("engines behind each server's internal balancer, 1 to %d", live.RanksMax))
	f.StringVar(&o.faults, "faults", "", "file of what goes wrong, in YAML or JSON: see above")
	f.StringVar(&o.kvEvents, "kv-events-config", "", "KV events over ZeroMQ, in the JSON that vLLM takes; ports are one higher for each further engine of each server")
	f.StringVar(&o.admin, "admin", "", "address at which faults can be changed while servers run: see above; none if empty")
	f.Uint64Var(&o.seed, "seed", 1, "decides what replies say and how long they are")
	f.DurationVar(&o.keepAlive, "keep-alive", vllmapi.DefaultKeepAlive, "idle connections are closed after it")
	f.BoolVar(&o.devMode, "dev-mode", false, "serve /sleep, /wake_up, /is_sleeping and /reset_prefix_cache, as VLLM_SERVER_DEV_MODE=1 does")
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
	f.BoolVar(&o.async, "async-scheduling", false, "compose each step while the one before it is computed, as vLLM does since 0.14")
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

// engine is the preset with what the flags change.
func (o *options) engine(f *pflag.FlagSet) (simengine.Config, error) {
	var none simengine.Config
	preset, err := fit.Preset(o.preset)
	if err != nil {
		return none, fmt.Errorf("checking --preset: %w", err)
	}
	if o.model == "" {
		// Names of presets are model, size, and what it runs on.
		o.model = preset.Name
		if parts := strings.SplitN(preset.Name, "-", 3); len(parts) == 3 {
			o.model = parts[0] + "-" + parts[1]
		}
	}
	o.preset = preset.Name
	if !slices.Contains(profileNames(), o.profile) {
		return none, fmt.Errorf("checking --profile: unknown %q, want one of %s", o.profile, strings.Join(profileNames(), ", "))
	}
	if o.count < 1 || o.count > maxServers {
		return none, fmt.Errorf("checking --count: %d, want 1 to %d", o.count, maxServers)
	}
	if o.engines < 1 || o.engines > live.RanksMax {
		return none, fmt.Errorf("checking --data-parallel-size: %d, want 1 to %d", o.engines, live.RanksMax)
	}
	if o.slots < 1 {
		return none, fmt.Errorf("checking --max-loras: %d, want 1 or more", o.slots)
	}
	if !(o.speed > 0 && o.speed <= maxSpeed) {
		return none, fmt.Errorf("checking --speed: %v, want more than 0 and at most %v", o.speed, maxSpeed)
	}
	if o.keepAlive <= 0 {
		return none, fmt.Errorf("checking --keep-alive: %v, want more than 0", o.keepAlive)
	}
	if err := o.readEvents(); err != nil {
		return none, err
	}
	c := preset.Config
	c.KVEvents = o.events.Publishes()
	switch o.policy {
	case "fcfs":
	case "priority":
		c.PriorityScheduling = true
	default:
		return none, fmt.Errorf("checking --scheduling-policy: unknown %q, want fcfs or priority", o.policy)
	}
	for name, change := range map[string]func(){
		"max-num-seqs":             func() { c.MaxNumSeqs = o.maxSeqs },
		"max-num-batched-tokens":   func() { c.MaxNumBatchedTokens = o.maxBatched },
		"no-enable-prefix-caching": func() { c.DisablePrefixCaching = o.noCaching },
		"async-scheduling":         func() { c.AsyncScheduling = o.async },
		"step-base":                func() { c.Cost.Base = o.stepBase },
		"request-overhead":         func() { c.Cost.RequestOverhead = o.overhead },
		"prefill-us-per-token":     func() { c.Cost.PrefillToken = o.prefill * 1e-6 },
		"decode-us-per-seq":        func() { c.Cost.DecodeSeq = o.decode * 1e-6 },
		"context-ns-per-token":     func() { c.Cost.ContextToken = o.contextNS * 1e-9 },
		"attention-ns":             func() { c.Cost.AttentionTerm = o.attention * 1e-9 },
	} {
		if f.Changed(name) {
			change()
		}
	}
	if err := o.size(f, &c); err != nil {
		return none, err
	}
	// vLLM refuses it too: not even a decode of all would fit a step.
	if c.MaxNumBatchedTokens < c.MaxNumSeqs {
		return none, fmt.Errorf("checking --max-num-batched-tokens: %d, want at least the %d of --max-num-seqs", c.MaxNumBatchedTokens, c.MaxNumSeqs)
	}
	return c, c.Validate()
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

// maxLoRAs is that of the metrics: 0 without adapters.
func (o *options) maxLoRAs() int {
	if len(o.served) == 0 && !o.loadLoRA {
		return 0
	}
	return o.slots
}

// size sets the pool and what depends on it: a context that wasn't asked for
// is as long as the pool allows.
func (o *options) size(f *pflag.FlagSet, c *simengine.Config) error {
	tokens := c.KVTokens()
	for _, flag := range []struct {
		name  string
		value int
		to    *int
	}{
		{"block-size", o.blockSize, &c.BlockSize},
		{"kv-tokens", o.kvTokens, &tokens},
		{"max-model-len", o.maxModelLen, &c.MaxModelLen},
	} {
		if !f.Changed(flag.name) {
			continue
		}
		if flag.value < 1 || flag.value > simengine.MaxTokens {
			return fmt.Errorf("checking --%s: %d, want 1 to %d", flag.name, flag.value, simengine.MaxTokens)
		}
		*flag.to = flag.value
	}
	c.Blocks = c.BlocksFor(tokens)
	if !f.Changed("max-model-len") {
		c.MaxModelLen = min(c.MaxModelLen, c.KVTokens())
	}
	return nil
}

// addresses are those to listen on.
func (o *options) addresses() ([]string, error) {
	host, port, err := net.SplitHostPort(o.listen)
	if err != nil {
		return nil, fmt.Errorf("checking --listen: %w", err)
	}
	first, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("checking --listen: port %q: want 0 to 65535", port)
	}
	if first != 0 && int(first)+o.count-1 > 65535 {
		return nil, errors.New("checking --count: ports end at 65535")
	}
	list := make([]string, o.count)
	for i := range list {
		n := int(first)
		if n != 0 {
			n += i
		}
		list[i] = net.JoinHostPort(host, strconv.Itoa(n))
	}
	return list, nil
}

// reachable is a URL of a listener's address: one that is open to all is
// reached by the loopback.
func reachable(address net.Addr) string {
	a, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return "http://" + address.String()
	}
	ip := a.Addr().Unmap()
	if ip.IsUnspecified() {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return "http://" + netip.AddrPortFrom(ip, a.Port()).String()
}
