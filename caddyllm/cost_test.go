//go:build unix

package caddyllm

import (
	"fmt"
	"strings"
	"syscall"
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

// cpuTime is what the process has used, which doesn't grow while others have
// the processor.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// FC-30: the cost of a decision grows with the text and not with its square,
// and hardly with the number of upstreams. Two are compared by turns, the least
// of the runs counts, and there are more of them for as long as a busy machine
// makes the one look too dear. BenchmarkDecision has the times.
func TestFC30TheCostOfADecisionIsLinear(t *testing.T) {
	type decision struct{ upstreams, size int }
	for _, c := range []struct {
		less, more decision
		most       float64
	}{
		{decision{4, 100 << 10}, decision{4, 1 << 20}, 20},
		{decision{256, 100 << 10}, decision{256, 1 << 20}, 20},
		{decision{4, 1 << 20}, decision{4, 10 << 20}, 70}, // no cache of the processor holds it; the square is 100
		{decision{4, 100 << 10}, decision{256, 100 << 10}, 3},
	} {
		run := func(of decision) func() time.Duration {
			d, body := newDecider(of.upstreams), longChat(of.size)
			return func() time.Duration {
				began := cpuTime(t)
				if !d.decide(body) {
					t.Fatalf("no decision for %d bytes", len(body))
				}
				return max(cpuTime(t)-began, time.Microsecond)
			}
		}
		less, more := run(c.less), run(c.more)
		short, long := time.Hour, time.Hour
		until := time.Now().Add(5 * time.Second)
		for n := 0; n < 5 || float64(long) > c.most*float64(short) && time.Now().Before(until); n++ {
			short, long = min(short, less()), min(long, more())
		}
		if float64(long) > c.most*float64(short) {
			t.Errorf("%d bytes among %d upstreams take %v, %d among %d take %v: more than %v times as long",
				c.less.size, c.less.upstreams, short, c.more.size, c.more.upstreams, long, c.most)
		}
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
