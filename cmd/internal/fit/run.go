package fit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// Run is a recorded run.
type Run struct {
	Model, Version, Device string // as recorded, or empty

	// Engine is how the engine was started. Blocks is 0 where it isn't recorded;
	// Cost.RequestOverhead is measured, where the clocks allow, the other
	// coefficients are 0.
	Engine simengine.Config

	// Replicas is the number of data-parallel engines.
	Replicas int

	// OneClock tells that arrivals were recorded on the clock of the other
	// times. Else they were aligned with it, and what a request spends before
	// the engine sees it is not in the recording.
	OneClock bool

	Requests []Request // in order of arrival
	Samples  []Sample  // in order of time; may be empty

	dense        bool   // known to be no mixture of experts
	blocksSource string // where Engine.Blocks is from, or Fit got it from

	// Notes say what the recording lacks and what was taken instead.
	Notes []string
}

// Request is one recorded request. Times count from the first arrival.
type Request struct {
	ID             string
	Prompt, Output int // tokens
	Blocks         []uint64

	Arrived, First, Last time.Duration
	Queued, Scheduled    time.Duration // negative where not recorded
}

// TTFT is the time to the first token, from arrival.
func (r *Request) TTFT() time.Duration { return r.First - r.Arrived }

// E2E is the time to the last token, from arrival.
func (r *Request) E2E() time.Duration { return r.Last - r.Arrived }

// Sample is a row of timeseries.csv. Its clock has an origin of its own.
type Sample struct {
	At               time.Duration
	Running, Waiting int
	Usage            float64 // of KV blocks, 0 to 1; negative where not recorded
}

const notRecorded = time.Duration(-1)

// Bounds of a recording.
const (
	maxRequests = 1 << 20
	maxSpan     = 30 * 24 * time.Hour
)

// Read reads the recording in dir. What must be there and isn't is named in the
// error; what could be there and isn't, in Run.Notes.
func Read(dir string) (*Run, error) {
	m, err := readMeta(dir)
	if err != nil {
		return nil, err
	}
	run := &Run{
		Model:   m.text("model", "engine_kwargs.model"),
		Version: m.text("vllm_version"),
		Device:  m.text("hardware.device_name"),
	}
	if len(m) == 0 {
		run.note("there is no meta.json")
	}
	if run.Engine, err = m.engine(run.note); err != nil {
		return nil, err
	}
	moe, known := m.find("resolved_config.parallel_config.is_moe_model").(bool)
	run.dense = known && !moe
	if run.Engine.Blocks > 0 {
		run.blocksSource = "recorded"
	}
	replicas, ok := m.number("resolved_config.parallel_config.data_parallel_size", "engine_kwargs.data_parallel_size")
	if !ok {
		replicas = 1
	}
	if replicas > maxReplicas {
		return nil, fmt.Errorf("reading meta.json: data_parallel_size is %v, want at most %d", replicas, maxReplicas)
	}
	run.Replicas = int(replicas)
	if run.Replicas > 1 {
		run.note("%d data-parallel engines: which request went to which isn't recorded and is simulated", run.Replicas)
	}
	rows, err := readRequests(dir, run.note)
	if err != nil {
		return nil, err
	}
	if err := run.align(rows); err != nil {
		return nil, err
	}
	if run.Samples, err = readSamples(dir, run.note); err != nil {
		return nil, err
	}
	if err := run.readTokens(dir, rows); err != nil {
		return nil, err
	}
	run.longest()
	return run, nil
}

func (r *Run) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// oneClock is the largest distance, in seconds, of two times of one request that
// are on one clock. Time of day and time since boot are further apart.
const oneClock = 1e6

// align puts all times on the clock of the tokens, counted from the first
// arrival.
func (r *Run) align(rows []row) error {
	mixed, ahead, queued := 0, math.Inf(1), 0
	for _, x := range rows {
		if math.Abs(x.Arrived-x.First) > oneClock {
			mixed++
		}
		if !math.IsNaN(x.Arrived) && !math.IsNaN(x.Queued) {
			ahead = min(ahead, x.Queued-x.Arrived)
			queued++
		}
	}
	if mixed > 0 && mixed < len(rows) {
		return errors.New("aligning the recording: arrival_time is on the clock of first_token_ts for some requests and not for others")
	}
	r.OneClock = mixed == 0
	shift := 0.0
	switch {
	case queued == 0 && !r.OneClock:
		return errors.New("aligning the recording: arrival_time is on another clock than first_token_ts, and queued_ts is missing")
	case !r.OneClock:
		// The request with the shortest way to the engine has none.
		shift = ahead
		r.note("arrival_time is on another clock than the rest: aligned by the shortest way to queued_ts, so the request overhead isn't in the recording and is reported as 0")
	case queued > 0:
		r.Engine.Cost.RequestOverhead = max(0, seconds(ahead))
	default:
		r.note("requests.jsonl has no queued_ts: the request overhead is taken as 0")
	}
	origin := math.Inf(1)
	for i := range rows {
		x := &rows[i]
		if math.IsNaN(x.Arrived) {
			x.Arrived = x.Queued - shift - r.Engine.Cost.RequestOverhead.Seconds()
		}
		x.Arrived += shift
		origin = min(origin, x.Arrived)
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.Arrived, b.Arrived) })
	for _, x := range rows {
		q := Request{
			ID: x.ID, Prompt: x.Prompt, Output: x.Output,
			Arrived: seconds(x.Arrived - origin), First: seconds(x.First - origin), Last: seconds(x.Last - origin),
			Queued: notRecorded, Scheduled: notRecorded,
		}
		if !math.IsNaN(x.Queued) {
			q.Queued = max(q.Arrived, seconds(x.Queued-origin))
		}
		if !math.IsNaN(x.Scheduled) {
			q.Scheduled = seconds(x.Scheduled - origin)
		}
		if q.Last > maxSpan || q.First <= q.Arrived || q.Last < q.First {
			return fmt.Errorf("aligning the recording: request %s arrives at %v, has its first token at %v and its last at %v", x.ID, q.Arrived, q.First, q.Last)
		}
		r.Requests = append(r.Requests, q)
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// longest sees to it that the engine takes every recorded request.
func (r *Run) longest() {
	n := 2
	for i := range r.Requests {
		n = max(n, r.Requests[i].Prompt+r.Requests[i].Output)
	}
	if r.Engine.MaxModelLen < n {
		if r.Engine.MaxModelLen > 0 {
			r.note("a recorded request of %d tokens exceeds max_model_len %d", n, r.Engine.MaxModelLen)
		}
		r.Engine.MaxModelLen = n
	}
}
