package caddyllm

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxLabels bounds the upstreams that have time series of their own;
	// further ones share the label "other".
	maxLabels = 1000
	// seriesKept is how long the counters of an upstream are kept that nobody
	// scrapes or sends to any more. The router forgets it as late.
	seriesKept = time.Hour
	// reclaimEvery is the least time between two looks for slots to take back
	// when there is none left.
	reclaimEvery = time.Minute
)

// slots are the upstreams that have time series of their own. One that is gone
// gives its slot back, or addresses that come and go would use them up.
type slots struct {
	gone func(upstream string) // deletes the series

	mu        sync.RWMutex
	used      map[string]*atomic.Int64 // when last, uptime in nanoseconds
	reclaimed time.Duration
}

func newSlots(gone func(upstream string)) *slots {
	return &slots{gone: gone, used: make(map[string]*atomic.Int64), reclaimed: -reclaimEvery}
}

var loaded = time.Now()

// uptime is a clock that doesn't step.
func uptime() time.Duration { return time.Since(loaded) }

// label is the upstream if it has a slot or gets one, else "other".
func (s *slots) label(now time.Duration, upstream string) string {
	if s.touch(now, upstream) {
		return upstream
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.used) >= maxLabels {
		if now-s.reclaimed < reclaimEvery {
			return "other"
		}
		s.take(now)
		if len(s.used) >= maxLabels {
			return "other"
		}
	}
	last := s.used[upstream] // another may have been faster
	if last == nil {
		last = new(atomic.Int64)
		s.used[upstream] = last
	}
	last.Store(int64(now))
	return upstream
}

// touch notes that an upstream is still there, and reports whether it has a
// slot.
func (s *slots) touch(now time.Duration, upstream string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	last := s.used[upstream]
	if last != nil {
		last.Store(int64(now))
	}
	return last != nil
}

// reclaim takes back the slots of upstreams that are gone.
func (s *slots) reclaim(now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(now)
}

func (s *slots) take(now time.Duration) {
	s.reclaimed = now
	maps.DeleteFunc(s.used, func(upstream string, last *atomic.Int64) bool {
		if now-time.Duration(last.Load()) < seriesKept {
			return false
		}
		s.gone(upstream)
		return true
	})
}
