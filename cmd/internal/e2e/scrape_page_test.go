package e2e

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// FC-58: the KV usage is read by each release's name for it, and where both
// are there, one counts.
func TestFC58KVGaugeWasRenamed(t *testing.T) {
	faces := newFaces(t, 3)
	page := func(lines ...string) string {
		return strings.Join(lines, "\n") + "\n"
	}
	faces[0].show(page(
		`vllm:num_requests_running{model_name="m"} 0`, `vllm:num_requests_waiting{model_name="m"} 0`, `vllm:num_requests_swapped{model_name="m"} 0`,
		`vllm:gpu_cache_usage_perc{model_name="m"} 0.2`, `vllm:cpu_cache_usage_perc{model_name="m"} 0.9`, `vllm:gpu_prefix_cache_hit_rate{model_name="m"} -1.0`,
		`vllm:cache_config_info{block_size="16",num_gpu_blocks="200"} 1.0`))
	faces[1].show(page(
		`vllm:num_requests_running{engine="0",model_name="m"} 0`, `vllm:num_requests_waiting{engine="0",model_name="m"} 0`,
		`vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.3`, `vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.3`,
		`vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="200"} 1.0`))
	faces[2].show(page(
		`vllm:num_requests_running{engine="0",model_name="m"} 4`, `vllm:num_requests_waiting{engine="0",model_name="m"} 0`,
		`vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.97`,
		`vllm:prompt_tokens_total{engine="0",model_name="m"} 7`, `vllm:prompt_tokens_created{engine="0",model_name="m"} 1.78e+09`,
		`vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="200"} 1.0`))
	g := site{upstreams: faceAddrs(faces)}.start(t)
	g.becomes(true, faceAddrs(faces)...)
	for i, want := range []float64{0.2, 0.3, 0.97} {
		g.shows("upstream_kv_usage_ratio", faces[i].addr, want)
	}
	if got := g.cold("kv", 30, faces); got[2] > 3 {
		t.Errorf("cold prompts land %v, want U3, whose cache is full, avoided", got)
	}
}

// FC-61: several engines behind one address count together, in any order.
func TestFC61SeveralEnginesBehindOneAddress(t *testing.T) {
	waiting := func(labels string, v int) string {
		return fmt.Sprintf("vllm:num_requests_waiting{%s} %d\nvllm:num_requests_running{%s} 0\n", labels, v, labels)
	}
	ranks := ""
	for i := range 8 {
		ranks += fmt.Sprintf("sglang:num_queue_reqs{tp_rank=\"%d\"} 5\nsglang:num_running_reqs{tp_rank=\"%d\"} 0\n", i, i)
	}
	cases := []struct {
		page string
		want float64
	}{
		{waiting(`engine="0"`, 0) + waiting(`engine="1"`, 11), 11},
		{waiting(`engine="1"`, 11) + waiting(`engine="0"`, 0), 11},
		{ranks, 5},
		{waiting(`engine="0"`, 2) + waiting(`engine="0"`, 9), 9},
		{waiting(`engine="0",model_name="a"`, 2) + waiting(`engine="0",model_name="b"`, 9), 11},
	}
	faces := newFaces(t, len(cases))
	for i, c := range cases {
		faces[i].show(c.page)
	}
	g := site{upstreams: faceAddrs(faces)}.start(t)
	g.becomes(true, faceAddrs(faces)...)
	for i, c := range cases {
		g.shows("upstream_waiting_requests", faces[i].addr, c.want)
	}
}

// FC-62: a redirect is followed once, within the upstream; to elsewhere
// nothing goes, least of all the key.
func TestFC62MetricsAnswerWithARedirect(t *testing.T) {
	faces := newFaces(t, 4)
	redirect := func(location string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics/" {
				_, _ = io.WriteString(w, quietPage(3, 1))
				return
			}
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
	}
	faces[0].answer(redirect("/metrics/"))
	faces[1].answer(redirect("http://" + faces[1].addr + "/metrics/"))
	faces[2].answer(redirect("http://" + faces[3].addr + "/metrics/"))
	g := site{upstreams: faceAddrs(faces[:3]), policy: "metrics_header Authorization KEY5e1f"}.start(t)
	g.becomes(true, faces[0].addr, faces[1].addr)
	eventually(t, "the redirect to elsewhere is refused, twice", func() bool { return g.failedFor(faces[2].addr, "redirect") >= 2 })
	if g.known(faces[2].addr) {
		t.Error("the load of an upstream that redirects to elsewhere is known")
	}
	if n := faces[3].scrapes(); n != 0 {
		t.Errorf("the place that an upstream redirects to is asked %d times", n)
	}
	if lines := g.warnings(faces[2].addr); len(lines) != 1 || !strings.Contains(lines[0], `"reason":"redirect","status":307`) {
		t.Errorf("%d warnings, want one of the redirect: %s", len(lines), strings.Join(lines, ""))
	}
	for _, f := range faces[:2] {
		for _, r := range f.requests() {
			if r.Header.Get("Authorization") != "KEY5e1f" {
				t.Errorf("%s is asked without the key", r.URL)
			}
		}
	}
}

// FC-64: an answer that is no page makes the load unknown, not zero, when the
// last good page has aged; the next good page ends that.
func TestFC64AnswersThatAreNoPages(t *testing.T) {
	write := func(header, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", header)
			_, _ = io.WriteString(w, text)
		}
	}
	useless := []struct {
		reason string
		h      http.HandlerFunc
	}{
		{"not_metrics", write("text/plain", "")},
		{"not_metrics", write("text/html", "<!DOCTYPE html>\n<html><body>Please log in</body></html>\n")},
		{"not_metrics", write("application/json", `{"num_requests_waiting": 0}`)},
		{"unknown_engine", write("text/plain", "python_info{version=\"3.12\"} 1.0\nprocess_start_time_seconds 1.7e9\n")},
		{"status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
		{"other", func(w http.ResponseWriter, _ *http.Request) { // cut off, half of its engines told
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, quietPage(0, 0))
			panic(http.ErrAbortHandler)
		}},
		{"status", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, quietPage(0, 0))
		}},
		{"not_metrics", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "\x8b\x00\x80")
		}},
		{"too_large", func(w http.ResponseWriter, _ *http.Request) {
			line := []byte(strings.Repeat("x", 1<<20) + " 1\n")
			for range 33 {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}},
	}
	faces := newFaces(t, len(useless))
	for _, f := range faces {
		f.show(quietPage(2, 1))
	}
	g := site{upstreams: faceAddrs(faces)}.start(t)
	g.becomes(true, faceAddrs(faces)...)
	for i, u := range useless {
		faces[i].answer(u.h)
	}
	g.becomes(false, faceAddrs(faces)...)
	for i, u := range useless {
		// Who can't read 32 MiB in the time of a scrape doesn't learn that they are
		// too many.
		slow := u.reason == "too_large" && g.failedFor(faces[i].addr, "timeout") > 0
		if g.failedFor(faces[i].addr, u.reason) == 0 && !slow {
			t.Errorf("answer %d: no scrape failed for %q", i, u.reason)
		}
		if v, ok := g.gauge("upstream_waiting_requests", faces[i].addr); ok {
			t.Errorf("answer %d: %v are told to wait, of an upstream whose load is unknown", i, v)
		}
		if age, ok := g.gauge("scrape_age_seconds", faces[i].addr); !ok || age < 2 {
			t.Errorf("answer %d: the last page is told to be %v s old (%v)", i, age, ok)
		}
	}
	// Pages that are good, whatever is said of their type.
	for i, header := range []string{
		"text/plain; version=0.0.4; charset=utf-8", "text/plain;version=1.0.0", "application/openmetrics-text; version=1.0.0; charset=UTF-8",
		"TEXT/PLAIN", "text/html; charset=iso-8859-1", "application/octet-stream", "text/plain; charset", "nonsense", "application/json",
	} {
		faces[i].answer(write(header, quietPage(i, 0)))
	}
	g.becomes(true, faceAddrs(faces)...)
	for i, f := range faces {
		g.shows("upstream_waiting_requests", f.addr, float64(i))
	}
}

// FC-65: what a strict parser stops at hides nothing.
func TestFC65ForeignFamiliesOnThePage(t *testing.T) {
	var pages []string
	for _, bad := range []string{
		"# TYPE x unknown\nx 1\n", "# TYPE x info\nx_info{a=\"b\"} 1\n", "x_bucket{le=\"1\"} 1 # {trace_id=\"a\"} 0.5 1.7e9\n",
		"# TYPE x gauge\n# TYPE x counter\nx 1\n", "x{p=\"\\d\"} 1\n",
	} {
		pages = append(pages, bad+quietPage(7, 3), quietPage(7, 3)+bad)
	}
	faces := newFaces(t, len(pages))
	for i, f := range faces {
		f.show(pages[i])
	}
	g := site{upstreams: faceAddrs(faces)}.start(t)
	for i, f := range faces {
		t.Logf("page %d of %s:\n%s", i, f.addr, pages[i])
		g.shows("upstream_waiting_requests", f.addr, 7)
		g.shows("upstream_running_requests", f.addr, 3)
	}
	if lines := g.warnings("load is unknown"); len(lines) != 0 {
		t.Errorf("warnings: %s", strings.Join(lines, ""))
	}
}

// FC-67: an upstream with numbers that can't be true neither draws all
// requests nor is left out.
func TestFC67StrangeNumbersOnThePage(t *testing.T) {
	strange := []string{"NaN", "+Inf", "-3", "1e309", "0x1p3", "18446744073709551616", "1_000"}
	faces := newFaces(t, len(strange)+4)
	page := func(waiting, kv string) string {
		return "vllm:num_requests_running 0\nvllm:num_requests_waiting " + waiting + "\nvllm:kv_cache_usage_perc " + kv +
			"\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"20000\"} 1\n"
	}
	for i, s := range strange {
		faces[i].show(page(s, "0.1"))
	}
	faces[len(strange)].show(page("0", "97"))
	faces[len(strange)+1].show(page("0", "NaN"))
	faces[len(strange)+2].show(page("0.0e+00", "1e-1"))
	faces[len(strange)+3].show(page("0", "0.1"))
	g := site{upstreams: faceAddrs(faces)}.start(t)
	g.becomes(true, faceAddrs(faces)[len(strange):]...)
	for i, f := range faces {
		if i >= len(strange) {
			g.shows("upstream_waiting_requests", f.addr, 0)
		} else if waiting, known := g.gauge("upstream_waiting_requests", f.addr); known {
			t.Errorf("U%d: %v are told to wait", i+1, waiting)
		}
		if usage, known := g.gauge("upstream_kv_usage_ratio", f.addr); known && usage != 0.1 {
			t.Errorf("U%d: KV usage is told to be %v", i+1, usage)
		}
	}
	counts := g.cold("strange", 220, faces)
	for i, n := range counts {
		if n < 2 || n > 60 {
			t.Errorf("cold prompts land %v: U%d has %d of 220", counts, i+1, n)
		}
	}
	faces[len(strange)+2].show(page("3.0e+00", "0.1"))
	g.shows("upstream_waiting_requests", faces[len(strange)+2].addr, 3) // from an exponent
}

// Pages that are packed though nobody asked, and pages at a second place.
func TestPagesInOtherForms(t *testing.T) {
	faces := newFaces(t, 2)
	faces[0].answer(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("the engine is asked to pack its page: %q", got)
		}
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		_, _ = io.WriteString(packed, quietPage(4, 2))
		_ = packed.Close()
	})
	faces[1].answer(func(w http.ResponseWriter, r *http.Request) { // as trtllm-serve
		if r.URL.Path != "/prometheus/metrics" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `[{"iter": 1, "numActiveRequests": 9}]`)
			return
		}
		_, _ = io.WriteString(w, "trtllm_num_requests_waiting{model_name=\"m\"} 5\ntrtllm_num_requests_running{model_name=\"m\"} 2\n")
	})
	g := site{upstreams: faceAddrs(faces)}.start(t)
	g.becomes(true, faceAddrs(faces)...)
	for i, want := range []float64{4, 5} {
		g.shows("upstream_waiting_requests", faces[i].addr, want)
	}
	eventually(t, "trtllm-serve was scraped ten times", func() bool { return faces[1].scrapes() > 10 })
	wrong := 0
	for _, r := range faces[1].requests() {
		if r.URL.Path == "/metrics" {
			wrong++
		}
	}
	if wrong != 1 {
		t.Errorf("trtllm-serve is asked for its JSON %d times, want once", wrong)
	}
}
