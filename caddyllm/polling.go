package caddyllm

import (
	"context"
	"sync"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/scrape"
)

// pollings has the process's one polling while any state uses it.
var pollings = caddy.NewUsagePool()

// polling is the poller that all states share, so that an engine is asked once
// an interval by the process, not once by each state.
type polling struct {
	*scrape.Poller
	start  sync.Once
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}
}

const pollingKey = "polling"

func loadPolling() (*polling, error) {
	v, _, err := pollings.LoadOrNew(pollingKey, func() (caddy.Destructor, error) {
		p := &polling{Poller: scrape.New(scrape.Config{}), ended: make(chan struct{})}
		p.ctx, p.cancel = context.WithCancel(context.Background())
		return p, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*polling), nil
}

func (p *polling) release() error {
	_, err := pollings.Delete(pollingKey)
	return err
}

// run starts the one goroutine of this package that lives on. The last state
// to leave ends it, and waits for it.
func (p *polling) run() {
	p.start.Do(func() {
		go func() {
			defer close(p.ended)
			p.Run(p.ctx)
		}()
	})
}

// Destruct implements caddy.Destructor.
func (p *polling) Destruct() error {
	p.cancel()
	// If polling never started, it shall not start any more.
	p.start.Do(func() { close(p.ended) })
	<-p.ended
	return nil
}
