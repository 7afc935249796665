package cluster

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/workload"
)

const (
	// kneeFactor is how far the mean TTFT at the knee is above that when idle.
	kneeFactor = 4
	// kneeScaled is the number of replicas above which the knee is scaled up
	// from it instead of searched.
	kneeScaled = 16
	// kneePrecision ends the search, relative.
	kneePrecision = 0.05
	// kneeInFlight gives a run up when so many requests are in flight for each
	// replica: it is far above the knee.
	kneeInFlight = 150
)

// kneePolicies are those whose better knee counts.
// The cheaper one comes first: above the knee an oracle looks through long
// queues.
var kneePolicies = []string{"lmetric", "oracle_rep"}

// Knee searches the rate, in requests a second, at which the better of
// oracle_rep and lmetric has four times the mean TTFT that lmetric has when
// idle. From 16 replicas on it grows with their number. Scenario, proxies and
// rate of c are not looked at. Errors are those of open, of Run and of ctx.
func Knee(ctx context.Context, open Opener, c Config) (float64, error) {
	c = Config{Replicas: c.Replicas, Engine: c.Engine, Seed: 1}.withDefaults()
	scale := 1.0
	if c.Replicas > kneeScaled {
		scale = float64(c.Replicas) / kneeScaled
		c.Replicas = kneeScaled
	}
	c.InFlightMax = kneeInFlight * c.Replicas
	k := knee{ctx: ctx, open: open, c: c}
	rate, err := k.search()
	if err != nil {
		return 0, fmt.Errorf("searching the knee: %w", err)
	}
	return rate * scale, nil
}

// Opener returns the workload for a rate in requests a second.
type Opener func(rate float64) (*workload.Workload, error)

type knee struct {
	ctx    context.Context
	open   Opener
	c      Config
	policy string
	limit  float64 // ms
}

// search finds the knee of the first policy, and then how much further the
// others go.
func (k *knee) search() (float64, error) {
	w, err := k.open(0)
	if err != nil {
		return 0, err
	}
	k.policy = kneePolicies[0]
	low := 0.02 * float64(k.c.Replicas) / aloneSeconds(w, &k.c)
	idle, _, err := k.mean(low)
	if err != nil {
		return 0, err
	}
	k.limit = kneeFactor * idle
	// Warm-up isn't counted in the mean but is in the sum, so a little more.
	k.c.TTFTMax = time.Duration(1.3 * k.limit * float64(time.Millisecond))
	low, err = k.climb(low, 4)
	for _, policy := range kneePolicies[1:] {
		if err != nil {
			return 0, err
		}
		k.policy = policy
		low, err = k.climb(low, 1.15)
	}
	return low, err
}

// climb returns the knee if it is above low, else low. It goes up by a factor
// until the mean is too high, then halves the range.
func (k *knee) climb(low, factor float64) (float64, error) {
	high := low
	for {
		high *= factor
		over, err := k.over(high)
		if err != nil {
			return 0, err
		}
		if over {
			break
		}
		low = high
	}
	for high/low > 1+kneePrecision {
		middle := math.Sqrt(low * high)
		over, err := k.over(middle)
		if err != nil {
			return 0, err
		}
		if over {
			high = middle
		} else {
			low = middle
		}
	}
	return low, nil
}

func (k *knee) over(rate float64) (bool, error) {
	mean, overloaded, err := k.mean(rate)
	return overloaded || mean > k.limit, err
}

// mean is the mean TTFT at a rate, ms.
func (k *knee) mean(rate float64) (mean float64, overloaded bool, err error) {
	if err := k.ctx.Err(); err != nil {
		return 0, false, err
	}
	w, err := k.open(rate)
	if err != nil {
		return 0, false, err
	}
	k.c.Rate = rate
	o, err := Run(w, k.c, Named(k.policy))
	if err != nil {
		return 0, false, err
	}
	return Mean(o.TTFT), o.Overloaded, nil
}

// Mean of values; 0 for none.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}

// aloneSeconds is about how long an engine works on a request that is alone.
func aloneSeconds(w *workload.Workload, c *Config) float64 {
	sum, n := 0.0, 0
	cost := &c.Engine.Cost
	for i := range w.Sessions {
		for j := range w.Sessions[i].Turns {
			t := &w.Sessions[i].Turns[j]
			sum += cost.PrefillToken*float64(t.Prompt) + cost.Base.Seconds()*float64(t.Output)
			n++
		}
	}
	return sum / float64(n)
}
