package caddyllm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// decider is all that a request costs beside its transport: the prompt is
// scanned and hashed, looked up at all upstreams, reserved and released.
type decider struct {
	scanner prompt.Scanner
	router  *route.Router
	targets []route.Target
	now     time.Time
}

func newDecider(upstreams int) *decider {
	d := &decider{router: route.New(route.Options{}), now: time.Unix(1_000_000, 0)}
	for i := range upstreams {
		d.targets = append(d.targets, route.Target{ID: fmt.Sprintf("engine%d:8000", i)})
	}
	return d
}

func (d *decider) decide(body []byte) bool {
	scanned, status := d.scanner.Scan(prompt.Chat, body, true, 0)
	if status != prompt.OK {
		return false
	}
	req := routeRequest(&scanned)
	d.now = d.now.Add(time.Second)
	c, ok := d.router.Pick(d.now, &req, d.targets)
	d.router.FirstByte(d.now, c.Ticket)
	d.router.Done(d.now, c.Ticket, route.Completed, nil)
	return ok
}

// longChat is a chat of about n bytes with the escapes that text has.
func longChat(n int) []byte {
	const line = `some words of plain prose, and \"code\"\n`
	return []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(line, n/len(line)+1) + `"}]}`)
}

// FC-30: the cost of a decision grows with the text and not with its square,
// and hardly with the number of upstreams. The least of the runs counts, and
// there are more of them for as long as a busy machine makes it look too much.
func TestFC30TheCostOfADecisionIsLinear(t *testing.T) {
	least := func(upstreams, size int, enough time.Duration) time.Duration {
		d, body, best := newDecider(upstreams), longChat(size), time.Hour
		until := time.Now().Add(5 * time.Second)
		for n := 0; n < 5 || best > enough && time.Now().Before(until); n++ {
			began := time.Now()
			if !d.decide(body) {
				t.Fatalf("no decision for %d bytes", len(body))
			}
			best = min(best, time.Since(began))
		}
		t.Logf("%3d upstreams, %8d bytes: %v", upstreams, size, best)
		return best
	}
	for _, upstreams := range []int{4, 32, 256} {
		for size, most := range map[int]time.Duration{100 << 10: time.Millisecond, 1 << 20: 10 * time.Millisecond} {
			if got := least(upstreams, size, most); got > most {
				t.Errorf("%d upstreams: %d bytes take %v, at most %v", upstreams, size, got, most)
			}
		}
	}
	short := least(4, 1<<20, 2*time.Millisecond)
	if long := least(4, 10<<20, 20*short); long > 20*short {
		t.Errorf("10 MiB take %v, 1 MiB %v", long, short)
	}
	few := least(4, 100<<10, 200*time.Microsecond)
	if many := least(256, 100<<10, 3*few); many > 3*few {
		t.Errorf("100 KiB take %v among 256 upstreams, %v among 4", many, few)
	}
}

func BenchmarkDecision(b *testing.B) {
	for _, upstreams := range []int{4, 32, 256} {
		for _, size := range []int{1 << 10, 10 << 10, 100 << 10, 1 << 20, 10 << 20} {
			b.Run(fmt.Sprintf("%d upstreams/%d KiB", upstreams, size>>10), func(b *testing.B) {
				d, body := newDecider(upstreams), longChat(size)
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					d.decide(body)
				}
			})
		}
	}
}
