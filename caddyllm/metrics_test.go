package caddyllm

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/scrape"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (-update writes it anew); got:\n%s", path, got)
	}
}

// testState is one that no policy uses.
func testState(name string, memory int64) *state {
	return &state{
		key: fmt.Sprintf("%s|256|%d", name, memory), name: name,
		poller: &polling{Poller: scrape.New(scrape.Config{})},
		router: route.New(route.Options{BlockBytes: 256, MemoryBytes: memory}),
	}
}

// busy makes all that a state shows of its upstreams.
func (s *state) busy(now time.Time, upstreams int) {
	var targets []route.Target
	for i := range upstreams {
		id := fmt.Sprintf("gpu%d:8000", i+1)
		targets = append(targets, route.Target{ID: id})
		load := route.Load{
			Waiting: route.Known(float64(i)), Running: route.Known(float64(i + 1)), KVUsage: route.Known(.25),
			CapacityTokens: route.Known(1e6), PromptTokens: route.Known(1000),
		}
		s.router.Scraped(now, id, &load)
	}
	for i := range upstreams {
		chain := []uint64{uint64(i) + 1, uint64(i) + 1e6}
		c, _ := s.router.Pick(now, &route.Request{Chain: chain, Bytes: 600, Stream: true}, targets[i:i+1])
		if i%2 == 0 {
			s.router.FirstByte(now, c.Ticket)
		}
	}
}

func gather(t testing.TB, c *collectors) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry() // as Caddy's is
	if err := c.register(registry); err != nil {
		t.Fatal(err)
	}
	return registry
}

func page(t testing.TB, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// filled has a value for each series that there is.
func filled(now time.Time, all ...*state) *collectors {
	c := newCollectors(func() []namedState { return unique(all) }, func() time.Time { return now })
	c.decided("gpu1:8000", route.ReasonPrefix, 20*time.Microsecond)
	c.decided("gpu2:8000", route.ReasonLoad, 90*time.Microsecond)
	c.fellBack(whyMethod)
	c.began(80*time.Millisecond, 120*time.Millisecond)
	c.began(300*time.Millisecond, 200*time.Millisecond)
	c.ended(&choice{Choice: route.Choice{MatchedTokens: 800}}, &route.Usage{PromptTokens: 1000, CachedTokens: 768, CachedKnown: true})
	c.scraped("gpu1:8000", "", 4*time.Millisecond)
	c.scraped("gpu2:8000", "refused", time.Millisecond)
	return c
}

// lastFields are the values of a page, which the golden leaves out.
var lastFields = regexp.MustCompile(`(?m)^([^#].*) \S+$`)

// What dashboards and alerts are written against: names, types, help, labels.
func TestMetricsPage(t *testing.T) {
	now := time.Now()
	s := testState("default", 1<<20)
	s.busy(now, 2)
	registry := gather(t, filled(now.Add(250*time.Millisecond), s))
	text := page(t, registry)
	golden(t, "metrics.txt", lastFields.ReplaceAllString(text, "$1"))
	for _, want := range []string{
		`first_token_seconds_sum 0.32`,
		`predicted_first_token_seconds_sum 0.38`,
		`first_token_error_seconds_sum{direction="late"} 0.04`,
		`first_token_error_seconds_sum{direction="early"} 0.1`,
		`prompt_tokens_total{kind="predicted_cached"} 800`,
		`inflight_requests{phase="decode",state="default",upstream="gpu1:8000"} 1`,
		`inflight_requests{phase="prefill",state="default",upstream="gpu2:8000"} 1`,
		`upstream_waiting_requests{state="default",upstream="gpu2:8000"} 1`,
		`scrape_age_seconds{state="default",upstream="gpu2:8000"} 0.25`,
		`index_entries{state="default",upstream="gpu1:8000"} 2`,
	} {
		if !strings.Contains(text, "\ncaddy_llm_prefix_"+want+"\n") {
			t.Errorf("no line %s in\n%s", want, text)
		}
	}

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("promlint: %s: %s", p.Metric, p.Text)
	}
}

// An engine that sleeps has told so: its load is known. With scrape off nobody
// asked, so that isn't a fault to alert of; an engine that doesn't answer is.
func TestWhoseLoadIsKnown(t *testing.T) {
	now := time.Now()
	asleep := route.Load{Waiting: route.Known(0), Running: route.Known(0), Awake: route.Known(0)}
	for _, tt := range []struct {
		name     string
		scraping bool
		page     *route.Load
		want     string // of upstream_load_known
	}{
		{"asleep", true, &asleep, "1"},
		{"silent", true, nil, "0"},
		{"scrape off", false, nil, ""},
	} {
		s := testState("default", 1<<20)
		policy := &LLMPrefix{}
		if policy.settings = policy.withDefaults(); !tt.scraping {
			policy.settings.scrapePaths = nil
		}
		s.users.join(&upstreams{policy: policy, scrapes: new(scrapeTransport)})
		if tt.page != nil {
			s.router.Scraped(now, "gpu1:8000", tt.page)
		}
		s.router.Pick(now, &route.Request{Bytes: 600}, []route.Target{{ID: "gpu1:8000"}})
		text := page(t, gather(t, newCollectors(func() []namedState { return []namedState{{"default", s}} }, func() time.Time { return now })))
		got := ""
		if m := regexp.MustCompile(`upstream_load_known\{.*\} (\S+)`).FindStringSubmatch(text); m != nil {
			got = m[1]
		}
		if got != tt.want {
			t.Errorf("%s: upstream_load_known is %q, want %q", tt.name, got, tt.want)
		}
	}
}

// States of one name and unlike shapes may stand side by side: no series comes
// twice, and which has the plain name doesn't change from scrape to scrape.
func TestStatesOfOneName(t *testing.T) {
	now := time.Now()
	a, b := testState("default", 1<<20), testState("default", 2<<20)
	c := testState("default|256|2097152", 4<<20) // a name that is another's key
	a.busy(now, 1)
	b.busy(now, 2)
	for range 10 {
		text := page(t, gather(t, newCollectors(func() []namedState { return unique([]*state{b, a, c}) }, time.Now)))
		for _, want := range []string{
			`caddy_llm_prefix_index_limit_bytes{state="default"} 1.048576e+06`,
			`caddy_llm_prefix_index_limit_bytes{state="default|256|2097152"} 2.097152e+06`,
			`caddy_llm_prefix_index_limit_bytes{state="default|256|2097152|256|4194304"} 4.194304e+06`,
		} {
			if !strings.Contains(text, want) {
				t.Fatalf("no line %s in\n%s", want, text)
			}
		}
	}
}

// Upstreams that come and go get series of their own, not more than there are
// slots, and the slots of those that are gone go to others.
func TestSlotsComeBack(t *testing.T) {
	c := newCollectors(func() []namedState { return nil }, time.Now)
	series := func() int {
		ch := make(chan prometheus.Metric, 10*maxLabels)
		c.decisions.Collect(ch)
		c.scrapes.Collect(ch)
		return len(ch)
	}
	count := func(now time.Duration, upstream string) string {
		label := c.upstreams.label(now, upstream)
		c.decisions.WithLabelValues(label, "cold").Inc()
		c.scrapes.WithLabelValues(label, "ok").Inc()
		return label
	}
	const hour = time.Hour
	for i := range 3 * maxLabels {
		name := fmt.Sprint("pod", i)
		if got, want := count(0, name), name; got != want && (i < maxLabels || got != "other") {
			t.Fatalf("upstream %d has the label %q", i, got)
		}
	}
	if got, want := series(), 2*(maxLabels+1); got != want {
		t.Fatalf("%d series, want %d", got, want)
	}
	if got := count(hour/2, "pod0"); got != "pod0" {
		t.Fatalf("pod0 lost its slot to %q", got)
	}
	// Nobody looks at the metrics for an hour, and new upstreams come.
	if got := count(hour, "late"); got != "late" {
		t.Errorf("a new upstream has the label %q when the others are gone", got)
	}
	if got, want := series(), 2*len([]string{"pod0", "late", "other"}); got != want {
		t.Errorf("%d series are left, want %d", got, want)
	}
	// The last of them goes, too.
	c.upstreams.reclaim(3 * hour)
	if got := series(); got != 2 {
		t.Errorf("%d series are left, want those of other", got)
	}
}

// An upstream that is offered and never chosen keeps its counts: the state
// still knows it.
func TestIdleUpstreamsKeepTheirSeries(t *testing.T) {
	s := testState("default", 1<<20)
	s.busy(time.Now(), 2)
	c := filled(time.Now(), s)
	for _, last := range c.upstreams.used {
		last.Store(int64(-2 * seriesKept))
	}
	c.upstreams.label(-2*seriesKept, "gone:8000")
	page(t, gather(t, c))
	if got := len(c.upstreams.used); got != 2 {
		t.Errorf("%d upstreams have a slot, want the two of the state", got)
	}
}

// pageUpstreams is the size that the page is measured at.
const pageUpstreams = 512

// A page costs what its series cost, and of that the collector's part is small.
func TestPageOfManyUpstreams(t *testing.T) {
	text := func(upstreams int) (allocs float64, series int) {
		s := testState("default", 64<<20)
		s.busy(time.Now(), upstreams)
		registry := gather(t, filled(time.Now(), s))
		series = strings.Count(page(t, registry), "\n")
		return testing.AllocsPerRun(3, func() { page(t, registry) }), series
	}
	few, fewSeries := text(pageUpstreams / 8)
	many, manySeries := text(pageUpstreams)
	each := (many - few) / float64(manySeries-fewSeries)
	if each > 12 {
		t.Errorf("a series takes %.1f allocations, want at most 12, nearly all of them the registry's", each)
	}
}

func BenchmarkPageOf512Upstreams(b *testing.B) {
	s := testState("default", 64<<20)
	s.busy(time.Now(), pageUpstreams)
	registry := gather(b, filled(time.Now(), s))
	b.ReportAllocs()
	for b.Loop() {
		page(b, registry)
	}
}
