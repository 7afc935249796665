package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/kvevents"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmapi"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

// grace is how long answers may take to end when the program is told to stop.
const grace = 500 * time.Millisecond

// server is one simulated vLLM server.
type server struct {
	engines *live.Group
	api     *vllmapi.Server
	events  []*kvevents.Publisher // by rank, if there are any
	face
}

// serve runs the servers until ctx ends.
func serve(ctx context.Context, o *options, engine simengine.Config, stdout io.Writer) error {
	faults, err := readFaults(o.faults, o.count)
	if err != nil {
		return err
	}
	addresses, err := o.addresses()
	if err != nil {
		return err
	}
	servers := make([]*server, 0, len(addresses))
	defer func() {
		for _, s := range servers {
			s.close()
		}
	}()
	var broken script
	for i, address := range addresses {
		s, err := newServer(o, engine, i)
		if err != nil {
			return err
		}
		servers = append(servers, s)
		// All ports are bound before anything is served or printed.
		if s.listener, err = s.api.Faults().Listen("tcp", address); err != nil {
			return err
		}
		broken.servers = append(broken.servers, s.api.Faults())
	}
	var admin *face
	if o.admin != "" {
		admin = &face{http: broken.admin()}
		if admin.listener, err = net.Listen("tcp", o.admin); err != nil {
			return fmt.Errorf("listening for --admin: %w", err)
		}
		defer admin.listener.Close()
	}
	if _, err := broken.add(faults); err != nil {
		return fmt.Errorf("reading faults: %s: %w", o.faults, err)
	}
	return run(ctx, servers, admin, func() {
		for _, s := range servers {
			fmt.Fprintf(stdout, "vllmsim: listening on %s model=%s preset=%s\n", reachable(s.listener.Addr()), o.model, o.preset)
		}
		if admin != nil {
			fmt.Fprintf(stdout, "vllmsim: faults at %s/faults\n", reachable(admin.listener.Addr()))
		}
	})
}

// face is an HTTP server and where it listens.
type face struct {
	http     *http.Server
	listener net.Listener
}

func (f *face) serve(failed chan<- error) {
	if err := f.http.Serve(f.listener); !errors.Is(err, http.ErrServerClosed) {
		failed <- fmt.Errorf("serving: %w", err)
	}
}

func newServer(o *options, config simengine.Config, i int) (*server, error) {
	s := &server{}
	exporter, err := vllmmetrics.New(vllmmetrics.Options{
		Model:       o.model,
		Engines:     o.engines,
		Cache:       vllmmetrics.CacheInfoOf(config),
		Profile:     vllmmetrics.Profile(o.profile),
		Stats:       func(rank int) simengine.Stats { return s.engines.Rank(rank).Stats() },
		Start:       time.Now(),
		MaxModelLen: config.MaxModelLen,
		MaxLoRAs:    o.maxLoRAs(),
	})
	if err != nil {
		return nil, err
	}
	drivers := make([]*live.Driver, o.engines)
	for rank := range drivers {
		engine, err := simengine.New(config)
		if err != nil {
			return nil, err
		}
		options := live.Options{Speed: o.speed, Observe: exporter.Observer(rank)}
		if config.KVEvents {
			p, err := kvevents.New(o.events, eventFormats[vllmmetrics.Profile(o.profile)],
				kvevents.Engine{BlockSize: config.BlockSize, Rank: rank, Offset: i*o.engines + rank})
			if err != nil {
				s.close()
				return nil, err
			}
			s.events = append(s.events, p)
			options.ObserveKV = p.Observe
		}
		drivers[rank] = live.New(engine, options)
	}
	if s.engines, err = live.NewGroup(drivers...); err != nil {
		return nil, err
	}
	s.api, err = vllmapi.New(vllmapi.Config{
		Model:                 o.model,
		ServedModels:          o.served,
		Driver:                s.engines,
		Exporter:              exporter,
		MaxQueued:             o.maxQueued,
		Version:               vllmmetrics.Profile(o.profile).Version(),
		Seed:                  o.seed,
		Instance:              strconv.Itoa(i),
		NoPromptTokensDetails: o.noDetails,
		SilentMisses:          !slices.Contains([]vllmmetrics.Profile{vllmmetrics.Main, vllmmetrics.Rust}, vllmmetrics.Profile(o.profile)),
		APIKeys:               o.keys,
		DevMode:               o.devMode,
		RuntimeLoRA:           o.loadLoRA,
		Reasoning:             o.reasoning,
		NoToolParser:          o.noTools,
		Restarted: func() {
			for _, p := range s.events {
				p.Restart()
			}
		},
	})
	if err != nil {
		s.close()
		return nil, err
	}
	s.http = s.api.HTTPServer(o.keepAlive)
	return s, nil
}

// close ends what a server that doesn't run holds.
func (s *server) close() {
	if s.http != nil {
		_ = s.http.Close()
	}
	if s.listener != nil {
		_ = s.listener.Close()
	}
	for _, p := range s.events {
		p.Close()
	}
}

// run serves until ctx ends or a server fails, and waits for all that it
// started: for each server its engines, its faults, its events and its accept
// loop, and the admin interface, if there is one. It calls started when all are.
func run(ctx context.Context, servers []*server, admin *face, started func()) error {
	// Engines outlive ctx, so that answers have their grace.
	engines, stopEngines := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEngines()
	failed := make(chan error, len(servers)+1)
	var group sync.WaitGroup
	for _, s := range servers {
		group.Go(func() { _ = s.engines.Run(engines) }) // returns engines' cause
		group.Go(func() { s.api.Faults().Run(engines) })
		for _, p := range s.events {
			group.Go(func() { p.Run(engines) })
		}
		group.Go(func() { s.serve(failed) })
	}
	if admin != nil {
		group.Go(func() { admin.serve(failed) })
	}
	started()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	if admin != nil {
		_ = admin.http.Close()
	}
	shutdown(servers)
	stopEngines()
	group.Wait()
	return err
}

// shutdown ends all servers at once: those that don't end in time are cut.
func shutdown(servers []*server) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	var group sync.WaitGroup
	for _, s := range servers {
		group.Go(func() {
			if s.http.Shutdown(ctx) != nil {
				_ = s.http.Close()
			}
		})
	}
	group.Wait()
}
