// Package enginemetrics reads the queue and the cache of an inference engine
// off its Prometheus page. It is no general parser: it takes the few series
// that it knows and lets no other line stop it, since one family that a strict
// parser refuses would hide an engine's whole load.
package enginemetrics

import (
	"errors"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// DefaultLimit is the largest page read, bytes. Pages of large data-parallel
// engines with all histograms are some hundred KiB; a page past the limit is
// not one of an engine.
const DefaultLimit = 32 << 20

// ErrTooLarge says that a page has more bytes than its limit.
var ErrTooLarge = errors.New("metrics page is too large")

// Page is what one metrics page told.
type Page struct {
	// Engine is the dialect that Load was read from: "vllm", "sglang",
	// "trtllm", "triton", "llamacpp", "tgi", "lmdeploy", "aphrodite",
	// "fastdeploy" or "nim"; empty if the page has no name
	// of any of them.
	Engine string
	// Load is unknown in all that the page doesn't say, or says in numbers
	// that can't be true.
	Load route.Load
	// Samples counts the lines that look like samples, of any family. A page
	// without any, such as HTML or JSON, is no metrics page.
	Samples int
}
