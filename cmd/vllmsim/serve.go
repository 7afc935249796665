package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmapi"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

// grace is how long answers may take to end when the program is told to stop.
const grace = 500 * time.Millisecond

// server is one simulated vLLM server.
type server struct {
	driver   *live.Driver
	api      *vllmapi.Server
	http     *http.Server
	listener net.Listener
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
			_ = s.http.Close()
			_ = s.listener.Close()
		}
	}()
	for i, address := range addresses {
		s, err := newServer(o, engine, i)
		if err != nil {
			return err
		}
		// All ports are bound before anything is served or printed.
		if s.listener, err = net.Listen("tcp", address); err != nil {
			return fmt.Errorf("listening: %w", err)
		}
		servers = append(servers, s)
	}
	for i, s := range servers {
		for _, f := range faults {
			if !f.concerns(i) {
				continue
			}
			if _, err := s.api.Faults().Add(f.fault()); err != nil {
				return err
			}
		}
	}
	return run(ctx, servers, func() {
		for _, s := range servers {
			fmt.Fprintf(stdout, "vllmsim: listening on %s model=%s preset=%s\n", reachable(s.listener.Addr()), o.model, o.preset)
		}
	})
}

func newServer(o *options, config simengine.Config, i int) (*server, error) {
	engine, err := simengine.New(config)
	if err != nil {
		return nil, err
	}
	s := &server{}
	exporter, err := vllmmetrics.New(vllmmetrics.Options{
		Model:       o.model,
		Cache:       vllmmetrics.CacheInfoOf(config),
		Profile:     vllmmetrics.Profile(o.profile),
		Stats:       func(int) simengine.Stats { return s.driver.Stats() },
		Start:       time.Now(),
		MaxModelLen: config.MaxModelLen,
	})
	if err != nil {
		return nil, err
	}
	s.driver = live.New(engine, live.Options{Speed: o.speed, Observe: exporter.Observer(0)})
	s.api, err = vllmapi.New(vllmapi.Config{
		Model:                 o.model,
		ServedModels:          o.served,
		Driver:                s.driver,
		Exporter:              exporter,
		Seed:                  o.seed,
		Instance:              strconv.Itoa(i),
		NoPromptTokensDetails: o.noDetails,
	})
	if err != nil {
		return nil, err
	}
	s.http = s.api.HTTPServer(o.keepAlive)
	return s, nil
}

// run serves until ctx ends or a server fails, and waits for all that it
// started: for each server its driver, its faults and its accept loop. It
// calls started when all are.
func run(ctx context.Context, servers []*server, started func()) error {
	// Engines outlive ctx, so that answers have their grace.
	engines, stopEngines := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEngines()
	failed := make(chan error, len(servers))
	var group sync.WaitGroup
	for _, s := range servers {
		group.Go(func() { _ = s.driver.Run(engines) }) // returns engines' cause
		group.Go(func() { s.api.Faults().Run(engines) })
		group.Go(func() {
			if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serving: %w", err)
			}
		})
	}
	started()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
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
