package caddyllm

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/route"
)

// unseenAfter is how long an upstream from a dynamic source is scraped after
// it was last offered for a request.
const unseenAfter = time.Minute

// offered notes when upstreams of a dynamic source were last offered, in
// steps, as the poller needs not know of each request.
type offered struct {
	asked bool // requests say which there are: nothing is noted
	mu    sync.Mutex
	at    map[string]time.Time
}

// asksRequests reports whether a proxy's dynamic source is told by requests
// where to look. A client must not point scrapes, which may bear a key.
func asksRequests(h *reverseproxy.Handler) bool {
	raw := h.DynamicUpstreamsRaw
	if raw == nil {
		var err error
		if raw, err = json.Marshal(h.DynamicUpstreams); err != nil {
			return true
		}
	}
	var source any
	return json.Unmarshal(raw, &source) != nil || !plain(source)
}

// plain reports whether no text in v has a placeholder that needs a request.
func plain(v any) bool {
	switch v := v.(type) {
	case string:
		_, err := caddy.NewReplacer().ReplaceOrErr(v, false, true)
		return err == nil
	case []any:
		return !slices.ContainsFunc(v, func(v any) bool { return !plain(v) })
	case map[string]any:
		for _, v := range v {
			if !plain(v) {
				return false
			}
		}
	}
	return true
}

// due are those of a pool that the poller must be told of.
func (o *offered) due(now time.Time, pool reverseproxy.UpstreamPool) (due []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, up := range pool {
		if last, ok := o.at[up.Dial]; !ok || now.Sub(last) >= unseenAfter/4 {
			o.at[up.Dial] = now
			due = append(due, up.Dial)
		}
	}
	if len(due) > 0 && len(o.at) > 2*len(pool) {
		maps.DeleteFunc(o.at, func(_ string, last time.Time) bool { return now.Sub(last) >= unseenAfter })
	}
	return due
}

// latest are the upstreams that were offered about when any was last, in order.
func (o *offered) latest() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var newest time.Time
	for _, last := range o.at {
		if last.After(newest) {
			newest = last
		}
	}
	for dial, last := range o.at {
		if newest.Sub(last) < unseenAfter {
			all = append(all, dial)
		}
	}
	slices.Sort(all)
	return all
}

// seen keeps upstreams scraped that the config doesn't name, as long as their
// source offers them.
func (u *upstreams) seen(pool reverseproxy.UpstreamPool) {
	defer u.policy.catch(inScrape)
	if u.offered == nil || u.offered.asked {
		return
	}
	for _, dial := range u.offered.due(time.Now(), pool) {
		if !u.scraping() || slices.Contains(u.static, dial) {
			continue
		}
		if err := u.scrape(dial, unseenAfter); err != nil {
			u.policy.logger.Debug("upstream's metrics are not scraped", zap.String("upstream", dial), zap.Error(err))
		}
	}
}

// available lists the upstreams that the proxy may use now, as targets of the
// decision; the two slices go together.
func (d *desk) available(pool reverseproxy.UpstreamPool, tried []string) {
	d.targets, d.ups = d.targets[:0], d.ups[:0]
	for _, u := range pool {
		if u.Available() {
			d.targets = append(d.targets, route.Target{ID: u.Dial, Tried: slices.Contains(tried, u.Dial)})
			d.ups = append(d.ups, u)
		}
	}
}

// nextRound is where a request shall not be sent to again. When it was sent to
// all that are available, another round begins, and only the last one comes
// last: any of the others may be back by now.
func nextRound(pool reverseproxy.UpstreamPool, tried []string) []string {
	if len(tried) == 0 {
		return tried
	}
	for _, u := range pool {
		if u.Available() && !slices.Contains(tried, u.Dial) {
			return tried
		}
	}
	return tried[len(tried)-1:]
}

// untried is the pool without the upstreams that this request was sent to
// before, or the whole pool if none of the others is available.
func untried(pool reverseproxy.UpstreamPool, tried []string) reverseproxy.UpstreamPool {
	if len(tried) == 0 {
		return pool
	}
	var others reverseproxy.UpstreamPool
	usable := false
	for _, u := range pool {
		if !slices.Contains(tried, u.Dial) {
			others = append(others, u)
			usable = usable || u.Available()
		}
	}
	if !usable {
		return pool
	}
	return others
}
