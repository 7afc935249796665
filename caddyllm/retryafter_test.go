package caddyllm

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// FC-83: seconds, dates, and what is neither.
func TestFC83RetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const none = -1
	for _, c := range []struct {
		value, date string
		want        time.Duration
	}{
		{"5", "", 5 * time.Second},
		{" 5 ", "", 5 * time.Second},
		{"0", "", 0},
		{"0.5", "", 500 * time.Millisecond},
		{"999999", "", maxRetryAfter},
		{strings.Repeat("9", 400), "", maxRetryAfter},
		{"Fri, 02 Jan 2026 03:04:35 GMT", "", 30 * time.Second},
		{"Friday, 02-Jan-26 03:04:35 GMT", "", 30 * time.Second},
		{"Fri, 02 Jan 2026 03:00:00 GMT", "", 0},
		{"Fri, 01 Jan 2044 00:00:00 GMT", "", maxRetryAfter},
		{"Fri, 02 Jan 2026 05:00:10 GMT", "Fri, 02 Jan 2026 05:00:00 GMT", 10 * time.Second},
		{"", "", none},
		{"-1", "", none},
		{"1e9", "", none},
		{"NaN", "", none},
		{"Inf", "", none},
		{".", "", none},
		{"1.2.3", "", none},
		{"soon", "", none},
		{"5 seconds", "", none},
		{"Fri, 32 Jan 2026 03:04:35 GMT", "", none},
	} {
		h := http.Header{}
		if c.value != "" {
			h.Set("Retry-After", c.value)
		}
		if c.date != "" {
			h.Set("Date", c.date)
		}
		got, ok := retryAfter(h, now)
		if ok != (c.want != none) || ok && got != c.want {
			t.Errorf("retryAfter(%.40q) = %v, %v, want %v", c.value, got, ok, c.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"5", "0.5", "999999", "Fri, 02 Jan 2026 03:04:35 GMT", "-1", "..", "1e400"} {
		f.Add(seed)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value string) {
		got, ok := retryAfter(http.Header{"Retry-After": {value}}, now)
		if got < 0 || got > maxRetryAfter || !ok && got != 0 {
			t.Errorf("retryAfter(%q) = %v, %v", value, got, ok)
		}
	})
}
