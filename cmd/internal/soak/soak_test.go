package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// A short soak in virtual time keeps to what doesn't depend on its length.
func TestVirtualSoakLosesNothing(t *testing.T) {
	out, err := virtual(t.Context(), options{virtual: 20_000, seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if out.failed != 0 || out.inFlight != 0 || len(out.heap) != tenths {
		t.Errorf("%+v, want nothing failed or in flight, and %d looks at the heap", out, tenths)
	}
	if c := out.more[0]; c.got > c.most {
		t.Errorf("%s: %v, want at most %v", c.what, c.got, c.most)
	}
}

func TestAHeapThatGrowsIsMissed(t *testing.T) {
	for _, c := range []struct {
		heap []float64
		ok   bool
	}{{[]float64{100, 100, 106}, true}, {[]float64{100, 108, 100}, false}, {[]float64{1, 3}, true}} {
		o := outcome{heap: c.heap}
		if got := o.checks("x")[0]; (got.got <= got.most) != c.ok {
			t.Errorf("%v: %v of %v, want ok: %v", c.heap, got.got, got.most, c.ok)
		}
	}
	for _, few := range []options{{virtual: 5}, {live: 9}, {virtual: -1}} {
		if err := run(t.Context(), io.Discard, few); err == nil || errors.Is(err, errMissed) {
			t.Errorf("%+v: %v, want a refusal", few, err)
		}
	}
	var text bytes.Buffer
	if err := run(t.Context(), &text, options{virtual: 1000, seed: 2}); err != nil && !strings.Contains(text.String(), "MISSED") {
		t.Errorf("%v, without a word why:\n%s", err, &text)
	}
	if strings.Count(text.String(), "| ok |")+strings.Count(text.String(), "| MISSED |") != 4 {
		t.Errorf("printed:\n%s\nwant four bounds", &text)
	}
}
