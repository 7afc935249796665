package caddyllm

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/prometheus/common/expfmt"
	names "github.com/prometheus/common/model"
	"go.uber.org/zap"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// FC-105: 100,000 requests of models, users, sessions and salts that nobody saw
// before leave no series and nothing on the heap. What is remembered of sessions
// is bounded, and full when the count begins.
func TestFC105AHundredThousandStrangersLeaveNothing(t *testing.T) {
	const before, counted, upstreamsOf = 10_000 / slowdown, 100_000 / slowdown, 2
	p := &LLMPrefix{State: "strangers", SessionHeader: "X-Session-Id", Memory: minMemory, logger: zap.NewNop(), fallback: new(reverseproxy.RandomSelection)}
	p.settings = p.withDefaults()
	shared, err := loadState(p.settings)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = shared.release() }()
	p.shared, p.upstreams = shared, &upstreams{policy: p}
	pool := offer("strangers1:8000", "strangers2:8000")

	strange := []string{
		strconv.Quote(strings.Repeat("m", 1<<20)), `"a\nb"`, `"a\"b"`, `"a\\b"`, `"a\u0000b"`, "\"a\xff\xfeb\"", `1`, `{"a":1}`, `null`, `[]`, `""`,
	}
	ask := func(i int) {
		model := strconv.Quote(fmt.Sprint("model", i))
		if i%before < len(strange) {
			model = strange[i%before]
		}
		body := fmt.Sprintf(`{"model":%s,"user":"u%d","cache_salt":"s%d","extra_key":"e%d","prompt_cache_key":"k%d","messages":[{"role":"user","content":"Hello, I am %d. %0300d"}]}`, model, i, i, i, i, i, i)
		r := httptest.NewRequest(http.MethodPost, "http://gateway/v1/chat/completions", strings.NewReader(body))
		r.Header.Set("X-Session-Id", fmt.Sprint("session", i))
		r = r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, caddy.NewReplacer()))
		if p.Select(pool, r, nil) == nil {
			t.Fatal("no upstream is chosen")
		}
		f := r.Context().Value(flightKey{p}).(*flight)
		if f.why != "" {
			t.Fatalf("%.100s goes to the fallback for %q", body, f.why)
		}
		f.current().firstByte()
		f.current().finish(route.Completed, &route.Usage{PromptTokens: 100, CompletionTokens: 5})
		f.done()
	}
	registry := gather(t, metrics)
	look := func() (series int, heap uint64) {
		text := page(t, registry)
		parser := expfmt.NewTextParser(names.UTF8Validation)
		if _, err := parser.TextToMetricFamilies(strings.NewReader(text)); err != nil {
			t.Fatalf("the page can't be read: %v", err)
		}
		for line := range strings.Lines(text) {
			others := strings.Contains(line, `upstream="`) && !strings.Contains(line, "strangers")
			if strings.HasPrefix(line, "caddy_llm_prefix_") && !strings.Contains(line, "_bucket{") && !others {
				series++
			}
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return series, m.HeapAlloc
	}
	for i := range uint64(2 * generation) {
		shared.sessions.put(i+1, "strangers1:8000")
	}
	for i := range before {
		ask(i)
	}
	series, heap := look()
	for i := range counted {
		ask(before + i)
	}
	seriesAfter, heapAfter := look()
	if seriesAfter != series || series > 50+20*upstreamsOf {
		t.Errorf("%d series, %d after %d strangers, want as many and at most %d", series, seriesAfter, counted, 50+20*upstreamsOf)
	}
	if grown := int64(heapAfter) - int64(heap); grown > 2<<20 {
		t.Errorf("%d strangers leave %d KiB on the heap", counted, grown>>10)
	}
}
