package caddyllm

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// reportStates tells of the state of a name, of all if that is empty, with so
// many of its last decisions at most. It reports false if there is none.
func reportStates(now time.Time, name string, decisions int) (report, bool) {
	r := report{Time: now.UTC(), States: []stateReport{}}
	for _, named := range namedStates() {
		if named.called(name) {
			r.States = append(r.States, named.state.report(now, named.name, decisions))
		}
	}
	return r, name == "" || len(r.States) > 0
}

// called says whether a state may be asked for by a name: the one that it is
// listed by, or the one in the config, which others may share. Empty stands for
// all.
func (n namedState) called(name string) bool {
	return name == "" || n.name == name || n.state.name == name
}

func (s *state) report(now time.Time, name string, decisions int) stateReport {
	r := stateReport{
		Name: name, BlockBytes: s.block,
		WindowSeconds: int(stepSpan/time.Second) * keptSteps, StepSeconds: int(stepSpan / time.Second),
		Upstreams: []upstreamReport{},
	}
	var whole sums
	for _, u := range s.known(now) {
		one, sum := s.upstreamReport(now, &u)
		r.Upstreams = append(r.Upstreams, one)
		whole.add(&sum)
	}
	r.Decisions, r.Reasons, r.Failed = whole.decisions(), whole.reasonCounts(), whole.lost
	r.Cached, r.FirstToken = whole.cached(), whole.firstToken()
	r.Series = stateSeries{make([]int, keptSteps), make([]*float64, keptSteps), make([]*float64, keptSteps)}
	for i := range whole.steps {
		step := &whole.steps[i]
		r.Series.Decisions[i] = step.decisions()
		told := ratio(step.toldCached, step.told)
		if told == nil {
			told = ratio(step.matched, step.prompt)
		}
		r.Series.CachedRatio[i] = told
		r.Series.FirstToken[i] = step.firstToken().ActualSeconds
	}
	if r.Decisions > 0 {
		for i := range r.Upstreams {
			r.Upstreams[i].Share = round(float64(r.Upstreams[i].Decisions) / float64(r.Decisions))
		}
	}
	r.Last = reportDecisions(s.journal.decisions(decisions))
	r.Advice = advise(&r)
	return r
}

// view is what is known of one upstream.
type view struct {
	route.Upstream
	member    bool // of a loaded config
	available bool
	scraped   bool // its metrics are asked for
}

// known lists the upstreams that the configs name and those that the router
// remembers, by address.
func (s *state) known(now time.Time) []view {
	members := s.users.members()
	var all []view
	for _, u := range s.snapshot(now) {
		v := view{Upstream: u}
		if i, ok := slices.BinarySearchFunc(members, u.ID, func(m member, id string) int { return cmp.Compare(m.dial, id) }); ok {
			v.member, v.available, v.scraped = true, members[i].available, members[i].scraped
			members = slices.Delete(members, i, i+1)
		}
		all = append(all, v)
	}
	for _, m := range members {
		all = append(all, view{Upstream: route.Upstream{ID: m.dial}, member: true, available: m.available, scraped: m.scraped})
	}
	slices.SortFunc(all, func(a, b view) int {
		if a.member != b.member {
			if a.member {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return all[:min(len(all), maxLabels)]
}

func (s *state) upstreamReport(now time.Time, v *view) (upstreamReport, sums) {
	r := upstreamReport{
		Address: v.ID, Available: v.available,
		InFlight:      inFlightReport{v.Prefill, v.Decode},
		Failures:      v.Failures,
		PredictedWait: round(v.Queued), PrefillRate: round(v.Rate),
		CacheBlocks: v.Entries, CacheCapacity: v.Capacity,
	}
	// Old numbers would look like a queue that stands still.
	if v.Fresh || v.State == route.StateDoubtful || v.State == route.StateAsleep {
		r.Waiting, r.Running, r.KVUsage = numberOf(v.Load.Waiting), numberOf(v.Load.Running), numberOf(v.Load.KVUsage)
	}
	if v.Scraped {
		r.ScrapeAge = rounded(v.LoadAge.Seconds())
	}
	var sum sums
	s.journal.look(v.ID, func(l *ledger) {
		if l == nil {
			return
		}
		sum.of(l.window(now))
		r.Engine = l.engine
		r.ScrapeFail = l.reason
		if l.status != 0 && l.reason != "" {
			r.ScrapeFail = fmt.Sprintf("%s %d", l.reason, l.status)
		}
	})
	r.State, r.Hint = standing(v, r.ScrapeFail)
	r.Decisions, r.Reasons, r.Failed = sum.decisions(), sum.reasonCounts(), sum.lost
	r.Cached, r.FirstToken = sum.cached(), sum.firstToken()
	r.Series = upstreamSeries{make([]int, keptSteps), make([]*float64, keptSteps)}
	for i := range sum.steps {
		r.Series.Decisions[i] = sum.steps[i].decisions()
		if w := sum.steps[i].waiting; w >= 0 {
			r.Series.Load[i] = rounded(float64(w + sum.steps[i].running))
		}
	}
	return r, sum
}

func reportDecisions(all []decision) []decisionReport {
	reports := make([]decisionReport, 0, len(all))
	for i := range all {
		d := &all[i]
		r := decisionReport{
			Number: d.number,
			Time:   d.at.UTC().Truncate(time.Millisecond), Upstream: d.upstream, Reason: d.reason, Kind: d.kind.String(), Attempt: d.attempt,
			Blocks: d.blocks, PromptTokens: d.prompt, MatchedTokens: d.matched, Outcome: outcomes[d.outcome],
		}
		if d.blocks > 0 {
			r.FirstBlock, r.Prompt = shown(d.first), shown(d.last)
		}
		if d.cached >= 0 {
			r.CachedTokens = &d.cached
		}
		if d.prompt > 0 {
			r.Predicted = rounded(d.predicted.Seconds())
		}
		if d.actual > 0 {
			r.FirstToken = rounded(d.actual.Seconds())
		}
		if d.outcome != underWay {
			r.Took = rounded(d.took.Seconds())
		}
		reports = append(reports, r)
	}
	return reports
}

func numberOf(n route.Num) *float64 {
	if !n.Known {
		return nil
	}
	return rounded(n.Value)
}

// round leaves six digits behind the point: microseconds, and shares finer than
// a window can have. What is no number counts as none.
func round(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Round(v*1e6) / 1e6
}

func rounded(v float64) *float64 {
	v = round(v)
	return &v
}
