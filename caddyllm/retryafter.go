package caddyllm

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what is read of a Retry-After, so that no sum with it
// overflows. For how long an upstream is really left alone, the decision says.
const maxRetryAfter = 24 * time.Hour

// retryAfter is how long an answer asks to be left alone, from 0 to
// maxRetryAfter. It reports false where the answer doesn't say, or not in a way
// that can be read: then it is a failure like any other. RFC 9110 has seconds
// and dates; some servers send fractions of seconds.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0, false
	}
	if strings.Trim(text, "0123456789.") == "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil && seconds == 0 {
			return 0, false // two points, say; but what is out of range is infinite
		}
		return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second)), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	// The upstream's clock may be another than ours; its answer tells it.
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), maxRetryAfter), true
}
