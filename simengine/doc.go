// Package simengine is one vLLM engine (V1) as a state machine: it decides step
// by step which requests run, which wait and which lose their memory, as vLLM's
// scheduler and block pool do, and asks a cost model how long each step takes.
//
// It generates no text. A request is a number of prompt tokens, the chained
// hashes of its blocks, and the number of tokens that it will generate.
//
// The life of a step:
//
//	Step(now)  ends the step in progress: tokens, finishes, one Stats snapshot;
//	           takes in what arrived and what was cancelled up to now;
//	           schedules: running requests first, then waiting ones in order,
//	           within the token budget and the block pool;
//	           begins the next step, which ends after Cost says so.
//	Next()     tells when to call Step again.
//
// So a request that arrives during a step is seen when that step ends, and
// Stats, as vLLM's /metrics, shows what was true at the end of a step.
//
// Start reading with Config (config.go), Request and Output (request.go), then
// Engine (engine.go) and schedule (schedule.go). Blocks are in internal/kv.
//
// Times are time.Duration since an epoch of the caller's choice. The package
// holds no clock, no randomness and no goroutine: the same calls give the same
// answers. An Engine is not safe for concurrent use; package live drives one by
// the wall clock.
//
// Advance does many steps at once and tells of first tokens and ends alone. It
// sums up runs of steps that only decode (steady.go, advance.go), which is what
// makes thousands of engines on a virtual clock affordable (package virtual). So
// that the sum is exact, time is counted in ticks of 2^-16 ns (cost.go): what a
// step leaves of a nanosecond goes to the next.
//
// With Config.AsyncScheduling a step is composed while the one before it is
// computed, and so without what arrives meanwhile.
//
// Each rule of the scheduler has a script in testdata, to be read beside
// TestScripts.
//
// What is left out: speculative decoding, encoder inputs, KV connectors and
// pipeline parallelism.
package simengine
