package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// dies sends the header of a stream and what is given of its body, and then
// its connection is gone.
func dies(said string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, said)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// vLLM sends the header of a stream when it takes a request, which may then
// wait in its queue for long. Killed meanwhile, it has answered nothing that
// could not be had elsewhere.
func TestAStreamThatHasSaidNothingIsTriedElsewhere(t *testing.T) {
	const event = "data: {\"id\":\"1\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
	for _, said := range []string{"", event, ": keep-alive\n\n"} {
		for _, allowed := range []bool{true, false} {
			t.Run(fmt.Sprintf("said %q, retry allowed %v", said, allowed), func(t *testing.T) {
				engines := newEngines(t, 2)
				engines[0].fail(dies(said))
				proxy := "lb_retries 2"
				if allowed {
					proxy += "\nlb_retry_match {\n method POST\n}"
				}
				g := site{upstreams: addrs(engines), proxy: proxy}.start(t)
				whole, broken, refused := 0, 0, 0
				for i := range 8 {
					body := chat(user(text(fmt.Sprint(i), 600)), map[string]any{"stream": true, "max_tokens": 2})
					req, err := http.NewRequest(http.MethodPost, "http://gateway/v1/chat/completions", bytes.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Content-Type", "application/json")
					switch a, err := g.do(req); {
					case a.status == http.StatusOK && err == nil && strings.HasSuffix(a.body, "data: [DONE]\n\n"):
						whole++
					case a.status == http.StatusOK && err != nil && a.body == said:
						broken++
					case a.status == http.StatusBadGateway:
						refused++
					default:
						t.Errorf("status %d, %q, %v", a.status, a.body, err)
					}
				}
				if met := len(engines[1].seen()); met != whole || whole == 0 {
					t.Errorf("the engine that lives saw %d requests, and %d answers are whole", met, whole)
				}
				switch {
				case said == "" && broken > 0:
					t.Errorf("%d empty answers with a good status", broken)
				case said == "" && allowed && refused > 0:
					t.Errorf("%d of 8 requests failed before an answer", refused)
				case said == "" && !allowed && refused == 0, said != "" && broken == 0:
					t.Error("the engine that dies was never asked")
				}
				g.idle()
			})
		}
	}
}
