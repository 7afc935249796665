package scrape

import (
	"context"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
)

// FirstOf tries several places of one upstream's page in turn, in one scrape,
// and then keeps to the one that had it: trtllm-serve has JSON at /metrics and
// its page at /prometheus/metrics. An answer other than 200, or of a type that
// is no metrics page, sends it on; an error doesn't, for an upstream that is
// away is so at all its paths. If no place has a page, the first one's answer
// is given, the one that its user knows of.
func FirstOf(first Fetch, more ...Fetch) Fetch {
	fetches := append([]Fetch{first}, more...)
	var found atomic.Int32 // 1 + the index of the place that had the page
	return func(ctx context.Context) (io.ReadCloser, int, string, error) {
		if at := found.Load(); at > 0 {
			body, status, kind, err := fetches[at-1](ctx)
			if err != nil || !isPage(status, kind) {
				found.Store(0) // search anew the next time
			}
			return body, status, kind, err
		}
		var firstStatus int
		var firstKind string
		for i, fetch := range fetches {
			body, status, kind, err := fetch(ctx)
			if err != nil {
				return body, status, kind, err
			}
			if isPage(status, kind) {
				found.Store(int32(i) + 1)
				return body, status, kind, nil
			}
			if body != nil {
				_ = body.Close()
			}
			if i == 0 {
				firstStatus, firstKind = status, kind
			}
		}
		return http.NoBody, firstStatus, firstKind, nil
	}
}

func isPage(status int, contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return status == http.StatusOK && kind != "application/json" && kind != "text/html"
}
