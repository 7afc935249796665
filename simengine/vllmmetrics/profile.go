package vllmmetrics

import "slices"

// Profile is a vLLM version whose page is shown.
type Profile string

// The profiles: names came and went with versions.
const (
	V08  Profile = "vllm-0.8"  // gpu_* names of the cache, time per output token
	V09  Profile = "vllm-0.9"  // kv_* names beside gpu_*
	V011 Profile = "vllm-0.11" // kv_* only, inter-token latency, sleep state
	V019 Profile = "vllm-0.19" // tokens by source
	Main Profile = "main"      // waiting by reason, pool size in tokens
	Rust Profile = "rust"      // main behind the Rust front end: OpenMetrics, and fewer names
)

// Profiles lists them, oldest first.
func Profiles() []Profile { return []Profile{V08, V09, V011, V019, Main, Rust} }

// Version is the vLLM version that the profile stands for.
func (p Profile) Version() string {
	versions := map[Profile]string{V08: "0.8.5", V09: "0.9.2", V011: "0.11.2", V019: "0.19.1", Main: "0.32.0", Rust: "0.32.0"}
	return versions[p]
}

func (p Profile) known() bool { return slices.Contains(Profiles(), p) }

// ContentType is that of the page. The Python client library told version 0.0.4
// of the format until its 0.22 of May 2025, and none of the Python servers
// negotiates; the Rust front end always sends OpenMetrics.
func (p Profile) ContentType() string {
	switch p {
	case V08, V09:
		return "text/plain; version=0.0.4; charset=utf-8"
	case Rust:
		return "application/openmetrics-text; version=1.0.0; charset=utf-8"
	default:
		return "text/plain; version=1.0.0; charset=utf-8"
	}
}

// span is the profiles that show a name, in the order of Profiles.
type span struct{ from, to Profile }

var always = span{V08, Rust}

func since(p Profile) span { return span{p, Rust} }
func until(p Profile) span { return span{V08, p} }

// python leaves the Rust front end out.
func (s span) python() span {
	s.to = Main
	return s
}

func (s span) has(p Profile) bool {
	list := Profiles()
	i := slices.Index(list, p)
	return slices.Index(list, s.from) <= i && i <= slices.Index(list, s.to)
}

// reasons to finish, all of which have a series from the start.
func (p Profile) reasons() []string {
	if until(V011).has(p) {
		return []string{"stop", "length", "abort"}
	}
	return []string{"stop", "length", "abort", "error", "repetition"}
}
