// Package fit calibrates simengine to a recorded vLLM run and tells how well the
// engine then reproduces it.
//
// A recording is a folder:
//
//	requests.jsonl   one object per request: input_toks, output_toks,
//	                 arrival_time, queued_ts, scheduled_ts, first_token_ts,
//	                 last_token_ts, in seconds
//	timeseries.csv   t, running, waiting, kv_cache_pct; optional
//	meta.json        what vLLM was started with; optional, piece by piece
//	workload_tokens.jsonl, plain or gzip
//	                 input_tok_ids of each request, from which prefixes are
//	                 told; optional
//
// Start reading with Read (run.go) and Simulate (simulate.go), then Fit
// (fit.go): it begins with what the recording says by itself (blocks.go), and
// alternates between simulating the run and a regression of the recorded times
// on the work that the simulated steps did (regress.go), until that stands
// still. A bounded search (search.go) then takes what is left of the error.
// Report (report.go) is the verdict, Figure (figure.go) the curves.
//
// Nothing here is random: the same recording gives the same coefficients.
package fit
