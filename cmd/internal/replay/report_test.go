package replay

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

// recorded has four successes with TTFTs of 10 to 40 ms, one without usage, and
// failures of two classes.
func recorded() []Record {
	var all []Record
	for i := range 4 {
		ttft := time.Duration(i+1) * 10 * time.Millisecond
		all = append(all, Record{
			TTFT: ttft, E2E: ttft + 100*time.Millisecond, CompletionTokens: 11,
			PromptTokens: 100, CachedTokens: int64(20 * i), CachedKnown: i < 3,
		})
	}
	return append(all,
		Record{Class: "status_503", Detail: "busy", E2E: time.Millisecond},
		Record{Class: ClassConnect, Detail: "connection refused"},
		Record{Class: "status_503", Detail: "later ones aren't shown"},
	)
}

func TestReportsLookAsDocumented(t *testing.T) {
	first := Summarize("llm_prefix", recorded(), 12345678*time.Microsecond)
	first.SetUpstreams([]int64{3, 1, 2})
	report := Report{Trace: "support.jsonl", Replicas: 3, Results: []Result{first, Summarize("live", nil, time.Second)}}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"testdata/report.txt":  func(b *bytes.Buffer) error { return report.WriteText(b) },
		"testdata/report.json": func(b *bytes.Buffer) error { return report.WriteJSON(b) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%s =\n%s\nwant\n%s", name, b.Bytes(), want)
		}
	}
}

func TestSummaryCountsOnlyWhatIsKnown(t *testing.T) {
	r := Summarize("x", recorded(), time.Second)
	if r.Requests != 7 || r.Failed != 3 {
		t.Errorf("Summarize counts %d requests, %d failed, want 7, 3", r.Requests, r.Failed)
	}
	// 0 + 20 + 40 cached of the 300 prompt tokens whose server told.
	if r.CachedTokenRatio == nil || *r.CachedTokenRatio != 0.2 {
		t.Errorf("cached-token ratio = %s, want 20 %%", Ratio(r.CachedTokenRatio))
	}
	if got, want := *r.TTFT, (Distribution{Mean: 25, P50: 25, P90: 37, P99: 39.7}); got != want {
		t.Errorf("TTFT = %+v, want %+v", got, want)
	}
	if got := r.TPOT.Mean; got != 10 {
		t.Errorf("mean TPOT = %v ms, want 10: 100 ms for the ten tokens after the first", got)
	}
}

func TestPercentileOfOneValueIsThatValue(t *testing.T) {
	for _, q := range []float64{0, 0.5, 0.99, 1} {
		if got := percentile([]float64{7}, q); got != 7 {
			t.Errorf("percentile(7, %v) = %v, want 7", q, got)
		}
	}
}
