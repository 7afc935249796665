// Package route decides which upstream a prompt goes to: the one whose first
// token will come soonest. It is used by the Caddy policy, and by anything that
// replays requests on a virtual clock.
//
// # The model
//
// All work is counted in prefill tokens. For a prompt of In tokens, of which
// upstream r holds the first h:
//
//	u     = In - h, at least one block        tokens to prefill
//	S     = A0 + u + K·u·(h + u/2)            work of the request
//	S'    = S, less what copying a popular prefix there is worth
//	W     = work sent to r that has no first token yet, less what of it is done,
//	        plus the queue of others that scrapes show; A0 counts once for each
//	        step that it takes, not for each request
//	mem   = seconds until r has room for the request's KV blocks
//	step  = what is left of r's step in progress, heard from passing streams
//	stall = θ·decoding·(S' - 0.7·least S')    what it takes from those that decode,
//	        plus joining·(S' - A0)/2, from those that wait for the same step
//	cost  = (W + S' + stall) / rate + mem + step
//
// The smallest cost wins; costs within the noise of the estimate are a tie,
// decided by rendezvous hashing of the prompt's first block that none of the tied
// holds. What r holds is the Router's own model of its prefix cache: an LRU of
// blocks sized by the capacity that r's metrics tell, or show, corrected by the
// cached tokens that answers tell. rate is learned from first tokens.
//
// Upstreams that this request was sent to before come last of all, and before
// them those that are suspect: that failed, or have work and show no sign of
// it, or sleep. A suspect gets a request now and then, and is trusted again at its
// first token, or when its counters move. Load that can't be seen is never
// taken for none: it is guessed as that of the upstreams that can be seen.
//
// Where scrapes show that other gateways send to the same upstreams, a prompt's
// owner, on which all gateways agree by hashing, is thought to hold a part of
// what nobody here has seen: another gateway may have sent it there. So a prompt
// that nobody here has seen is left there, unless that costs more than what the
// other would have to do again. Their prefills are overheard, as they make longer
// the steps of which passing streams tell. And work costs more the more others
// send to an upstream, so that gateways settle apart as far as the load lets
// them.
//
// # Reading guide
//
// api.go has the vocabulary, router.go the life of a request, upstream.go what of
// it an upstream carries, turn.go when its turn comes, keep.go what can't be
// evicted. candidate.go says who is looked at, cost.go is the formula, popular.go
// its discount for popular prefixes, pulse.go its ear for steps, ties.go how ties
// fall. foreign.go and gauge.go are what scrapes teach, learn.go what answers
// teach, suspect.go what silence teaches, refusal.go what refusals hide, peers.go
// what the load of others teaches, overhear.go what is heard of it, homes.go what
// gateways agree on without a word, beginnings.go where what many prompts share
// ends. snapshot.go shows it all.
//
// Nothing here knows the time or chance but by arguments and Options.Seed. A
// Router is not safe for concurrent use; a Pulse is.
package route
