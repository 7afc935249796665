package vllmapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// words is a prompt of so many tokens: a head that others may share, and a tail
// of its own.
func words(head, own, shared, tokens int) string {
	ids := make([]string, tokens)
	for i := range ids {
		id := 1000*head + i%1000
		if i >= shared {
			id = 1000*own + i%1000
		}
		ids[i] = fmt.Sprint(id)
	}
	return `{"prompt":[` + strings.Join(ids, ",") + `],"max_tokens":1}`
}

// FC-112: what is cached need not be computed, and time shows it; the cache
// forgets what was used the longest ago; and who finds no slot waits.
func TestFC112TimeDependsOnWhatIsCached(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		ask := func(body string) (took time.Duration, cached int) {
			begin := time.Now()
			v := b.post(textPath, body).whole(t)
			return time.Since(begin), v.cached()
		}
		cold, none := ask(words(1, 1, 0, 10_000))
		again, all := ask(words(1, 1, 0, 10_000))
		common, most := ask(words(1, 2, 9_000, 10_000))
		if none != 0 || all != 9_984 || most != 8_992 {
			t.Errorf("cached are %d, %d and %d tokens, want 0, 9984 and 8992", none, all, most)
		}
		// 10 ms a step and 1 ms for each 16 tokens, 8192 tokens in a step.
		if cold != 645*time.Millisecond || again != 11*time.Millisecond || common != 73*time.Millisecond {
			t.Errorf("took %v cold, %v again and %v with most in common", cold, again, common)
		}
	})
}

func TestFC112TheCacheForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := benchEngine
		c.Blocks, c.MaxModelLen = 1001, 15_000
		b := newBench(t, c, 1)
		hits := func(prompts, rounds int) (cached []int) {
			for range rounds {
				for i := range prompts {
					v := b.post(textPath, words(10*prompts+i, 0, 6400, 6400)).whole(t)
					cached = append(cached, v.cached())
				}
			}
			return cached
		}
		// Two prompts of 400 blocks fit 1000; of three in rotation, the one that
		// is asked for next is the one that was used the longest ago. Its tail
		// goes first, and making room for it takes the tail of the next.
		if got := hits(2, 2); !slices.Equal(got, []int{0, 0, 6384, 6384}) {
			t.Errorf("of two prompts in rotation are cached %v", got)
		}
		got := hits(3, 4)
		if !slices.Equal(got[:3], []int{0, 0, 0}) || slices.Max(got) > 3200 {
			t.Errorf("of three prompts in rotation are cached %v", got)
		}
	})
}

func TestFC112WhoFindsNoSlotWaits(t *testing.T) {
	run := func() (shown string, ends []time.Duration) {
		inBubble(t, func(t *testing.T, b *bench) {
			begin := time.Now()
			var group sync.WaitGroup
			var mu sync.Mutex
			for i := range 8 {
				group.Go(func() {
					b.do(t.Context(), http.MethodPost, textPath, strings.Replace(words(i, i, 0, 160), `"max_tokens":1`, `"max_tokens":50,"ignore_eos":true`, 1))
					mu.Lock()
					ends = append(ends, time.Since(begin))
					mu.Unlock()
				})
				synctest.Wait() // who comes first is served first
			}
			time.Sleep(100 * time.Millisecond)
			s := b.driver.Stats()
			shown = fmt.Sprintf("%d running, %d waiting", s.Running, s.Waiting)
			group.Wait()
		})
		return shown, ends
	}
	shown, ends := run()
	if shown != "4 running, 4 waiting" {
		t.Errorf("of 8 requests for 4 slots are %s", shown)
	}
	if len(ends) != 8 || ends[4] < 2*ends[0]*9/10 {
		t.Errorf("requests ended after %v; the last four want twice the time", ends)
	}
	if again, same := run(); again != shown || !slices.Equal(same, ends) {
		t.Errorf("another run ends after %v, the first after %v", same, ends)
	}
}

// Two cold prompts that come together: the second finds the first's blocks in
// the step that computes them.
func TestFC112TwinsShareAStep(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.post(textPath, words(9, 9, 0, 16)) // keeps the engine busy while the twins come
		var group sync.WaitGroup
		var cached [2]int
		begin := time.Now()
		for i := range cached {
			group.Go(func() {
				v := b.post(textPath, words(1, 1, 0, 6400)).whole(t)
				cached[i] = v.cached()
			})
		}
		group.Wait()
		took := time.Since(begin)
		slices.Sort(cached[:])
		alone := 10*time.Millisecond + 400*time.Millisecond
		if cached[0] != 0 || cached[1] != 6384 || took < alone || took > alone+21*time.Millisecond {
			t.Errorf("cached are %v, both took %v; one alone takes %v", cached, took, alone)
		}
	})
}
