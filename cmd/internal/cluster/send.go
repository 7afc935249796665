package cluster

import (
	"fmt"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/rivals"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/workload"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// send routes a job, again and again until an engine takes it.
func (s *sim) send(n int) error {
	j := &s.jobs[n]
	if !j.started {
		j.started = true
		s.inFlight++
		s.over = s.over || s.cfg.InFlightMax > 0 && s.inFlight > s.cfg.InFlightMax
	}
	turn := s.turn(j)
	p := &s.proxies[j.proxy]
	for {
		s.targets = s.targets[:0]
		for i, r := range s.replicas {
			if r.healthy {
				s.targets = append(s.targets, rivals.Target{Upstream: i, Tried: j.tries>>min(i, 63)&1 == 1})
			}
		}
		if s.allTried() {
			s.plan(s.now+tryAgain, arrive, n, 0)
			return nil
		}
		s.attempts = append(s.attempts, int32(n))
		id := uint64(len(s.attempts) - 1)
		s.describe(id, turn)
		j.attempt = id
		at := p.policy.Pick(s.now, &s.request, s.targets)
		if at < 0 || at >= len(s.targets) {
			return fmt.Errorf("a policy chose place %d of %d", at, len(s.targets))
		}
		j.up = int32(s.targets[at].Upstream)
		r := s.replicas[j.up]
		if r.process && r.reached {
			return s.clock.Submit(int(j.up), s.engineRequest(id, turn))
		}
		p.policy.End(s.now, id, rivals.Failed, nil)
		j.tried(int(j.up))
	}
}

// tryAgain is Caddy's lb_try_interval.
const tryAgain = 250 * time.Millisecond

// allTried tells whether there is nobody left to send to.
func (s *sim) allTried() bool {
	for _, t := range s.targets {
		if !t.Tried {
			return false
		}
	}
	return true
}

func (s *sim) turn(j *job) *workload.Turn { return &s.load.Sessions[j.session].Turns[j.turn] }

// describe fills in what the proxy sees.
func (s *sim) describe(id uint64, t *workload.Turn) {
	s.request = rivals.Request{
		ID: id, Bytes: t.Bytes, Tokens: t.Bytes / 4, PromptTokens: t.Prompt, Output: t.Output,
		Chain: func(block int) []uint64 {
			chain := t.Content.Bytes(block)
			return chain[:min(t.Bytes/block, len(chain))]
		},
		Blocks: func(block int) []int32 {
			numbers := s.load.ByteNumbers(t.Content, block)
			return numbers[:min(t.Bytes/block, len(numbers))]
		},
		TokenBlocks: func(block int) []int32 {
			numbers := s.load.TokenNumbers(t.Content, block)
			return numbers[:min(t.Prompt/block, len(numbers))]
		},
		UserKey: t.Content.UserKey,
	}
}

func (s *sim) engineRequest(id uint64, t *workload.Turn) simengine.Request {
	size := s.cfg.Engine.BlockSize
	chain := t.Content.Tokens(size)
	prompt := min(t.Prompt/size, len(chain))
	return simengine.Request{
		ID: id, PromptTokens: t.Prompt, OutputTokens: t.Output,
		Blocks: chain[:prompt], OutputBlocks: chain[prompt:min((t.Prompt+t.Output)/size, len(chain))],
	}
}
