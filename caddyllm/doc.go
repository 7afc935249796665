// Package caddyllm is the Caddy module
// http.reverse_proxy.selection_policies.llm_prefix: a selection policy of
// Caddy's reverse proxy for upstreams that serve large language models.
//
// It reads the body of a prompt (chat, completions and their like) once, cuts
// the prompt into blocks, and sends the request to the upstream whose first
// token will come soonest: by what the upstream's prefix cache probably holds,
// by the queue that its metrics show, and by this proxy's own requests in
// flight. Package route decides; this package connects it to Caddy.
//
// # When it steps aside
//
// A request without a prompt goes to the fallback policy, least_conn unless
// configured: a method other than POST, a path that takes no prompt, a body in an
// unknown coding or unreadable, JSON that an engine would refuse. Each is counted by
// reason. No fault of this package's costs a request: a panic while deciding
// is a fallback too, and one elsewhere is counted and passed by.
//
// An upstream that answers 429 or 5xx with a Retry-After is left alone for that
// time, a minute at most; without one, for half a second that doubles with each
// failure in a row. Other 4xx, and 501, teach nothing.
//
// # What it costs
//
// Per request in flight, its body up to max_body. Per upstream, one GET of its
// metrics each scrape_interval, all from one goroutine per process.
// Per state, an index of memory bytes at most. One lock is taken for a few
// microseconds per decision, first byte and end, and another for notes of it.
//
// # Reading guide
//
// policy.go has the options, which are the manual, and the lifecycle;
// settings.go their defaults and bounds, caddyfile.go their syntax. select.go
// is the way of a request, selectread.go what is read of it, flight.go what is
// known of it: body.go keeps its body, bodyreader.go gives it to each attempt,
// coding.go and form.go look into bodies that aren't plain JSON, homes.go knows
// where sessions and responses live, attempt.go is one try, observe.go watches
// its answer, retryafter.go and usage.go read what it tells, opening.go tells a
// first token from what comes before it, publish.go what was decided. guard.go
// ends faults of ours where they happen. upstreams.go and offered.go know
// Caddy's handler and its pools, scrapetransport.go the way of a scrape through
// its transport, pages.go where an upstream's metrics are. state.go is what
// reloads keep, polling.go what the process shares; metrics.go what Prometheus
// sees.
//
// Operators ask through admin.go, status.go and command.go; statusshapes.go and
// explanation.go have what they are told, statusreport.go where it comes from,
// and statusjournal.go what is noted for them.
package caddyllm
