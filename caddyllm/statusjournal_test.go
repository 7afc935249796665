package caddyllm

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prompt"
	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

var someChoice = choice{Choice: route.Choice{PromptTokens: 100, MatchedTokens: 40, FirstToken: time.Second}, reason: "prefix", prompt: true}

func TestJournalKeepsTheLastDecisions(t *testing.T) {
	j, now := new(journal), time.Unix(1_000_000, 0)
	first := j.decided(now, prompt.Chat, "a:1", 1, &someChoice)
	for i := range keptDecisions + 10 {
		j.decided(now, prompt.Chat, fmt.Sprint("u", i), 1, &someChoice)
		j.decided(now, prompt.None, "a:1", 1, &someChoice) // no prompt: counted alone
	}
	all := j.decisions(keptDecisions)
	if len(all) != keptDecisions || all[0].upstream != fmt.Sprint("u", keptDecisions+9) || all[keptDecisions-1].upstream != "u10" {
		t.Errorf("%d decisions from %s to %s are kept", len(all), all[0].upstream, all[len(all)-1].upstream)
	}
	// What comes of one that is gone must not be told of the one in its place.
	j.ended(now, first, route.Failed, &someChoice, nil)
	if slices.ContainsFunc(j.decisions(keptDecisions), func(d decision) bool { return d.outcome != underWay }) {
		t.Error("the end of a forgotten decision is told of another")
	}
}

func TestJournalForgetsWhatIsOlderThanTheWindow(t *testing.T) {
	j, now := new(journal), time.Unix(1_000_000, 0)
	count := func() (n int) {
		j.look("a:1", func(l *ledger) {
			var s sums
			s.of(l.window(now))
			n = s.decisions()
		})
		return n
	}
	for range keptSteps {
		j.decided(now, prompt.Chat, "a:1", 1, &someChoice)
		now = now.Add(stepSpan)
	}
	if got := count(); got != keptSteps-1 {
		t.Errorf("%d decisions of the window before are counted a step later, want all but one of %d", got, keptSteps)
	}
	now = now.Add(24 * time.Hour)
	if got := count(); got != 0 {
		t.Errorf("%d decisions of yesterday are counted", got)
	}
	now = now.Add(-48 * time.Hour) // the clock was set back
	j.decided(now, prompt.Chat, "a:1", 1, &someChoice)
	if got := count(); got != 1 {
		t.Errorf("%d decisions are counted after the clock went back, want the one since", got)
	}
}

func TestJournalIsBounded(t *testing.T) {
	j, now := new(journal), time.Unix(1_000_000, 0)
	for i := range 3 * maxLedgers {
		j.ended(now, j.decided(now, prompt.Chat, fmt.Sprint("u", i), 1, &someChoice), route.Completed, &someChoice, nil)
	}
	if len(j.ledgers) != maxLedgers {
		t.Errorf("%d upstreams have a ledger, want %d", len(j.ledgers), maxLedgers)
	}
	now = now.Add(2 * ledgerIdle)
	j.decided(now, prompt.Chat, "new:1", 1, &someChoice)
	if len(j.ledgers) != 1 {
		t.Errorf("%d upstreams have a ledger after all but one were idle", len(j.ledgers))
	}
}

func TestJournalAllocatesNothing(t *testing.T) {
	j, now := new(journal), time.Unix(1_000_000, 0)
	usage := &route.Usage{PromptTokens: 100, CachedTokens: 30, CachedKnown: true}
	note := func() {
		e := j.decided(now, prompt.Chat, "a:1", 1, &someChoice)
		j.began(now, e, time.Second, time.Second)
		j.ended(now, e, route.Completed, &someChoice, usage)
		now = now.Add(time.Second)
	}
	note()
	if n := testing.AllocsPerRun(1000, note); n != 0 {
		t.Errorf("noting a request allocates %v times", n)
	}
}

func BenchmarkJournal(b *testing.B) {
	j, now := new(journal), time.Unix(1_000_000, 0)
	b.ReportAllocs()
	for b.Loop() {
		e := j.decided(now, prompt.Chat, "a:1", 1, &someChoice)
		j.began(now, e, time.Second, time.Second)
		j.ended(now, e, route.Completed, &someChoice, nil)
		now = now.Add(time.Millisecond)
	}
}

func TestMembersOfSeveralProxies(t *testing.T) {
	var u users
	proxies := []*upstreams{
		{proxy: &reverseproxy.Handler{Upstreams: offer("b:1", "a:1")}},
		{static: []string{"b:1", "c:1"}},
		{static: []string{"d:1"}, offered: &offered{at: make(map[string]time.Time)}},
	}
	proxies[0].begun.Store(true)
	proxies[2].offered.due(time.Unix(1_000_000, 0), offer("e:1"))
	proxies[2].offered.due(time.Unix(1_000_100, 0), offer("f:1"))
	for _, p := range proxies {
		u.join(p)
	}
	want := []member{{"a:1", true, false}, {"b:1", true, false}, {"c:1", true, false}, {"d:1", true, false}, {"f:1", true, false}}
	if got := u.members(); !slices.Equal(got, want) {
		t.Errorf("members are %v, want %v", got, want)
	}
	u.leave(proxies[1])
	u.leave(proxies[2])
	if got := u.members(); len(got) != 2 {
		t.Errorf("members are %v after two proxies left", got)
	}
}
