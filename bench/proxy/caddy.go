package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// upstreams answer a chat at once, as a small model would whose answer is one
// token.
func upstreams(n int) (addrs []string, stop func(), err error) {
	const answer = `{"id":"chatcmpl-1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":8000,"completion_tokens":1,"total_tokens":8001}}`
	var servers []*http.Server
	stop = func() {
		for _, s := range servers {
			_ = s.Close()
		}
	}
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			stop()
			return nil, nil, err
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		})}
		servers = append(servers, s)
		addrs = append(addrs, l.Addr().String())
		go func() { _ = s.Serve(l) }() // ends with stop
	}
	return addrs, stop, nil
}

// process is Caddy with a site for each policy.
type process struct {
	cmd   *exec.Cmd
	dir   string
	sites []string // addresses
}

func start(binary string, ups []string) (*process, error) {
	dir, err := os.MkdirTemp("", "bench-proxy")
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir}
	var text strings.Builder
	text.WriteString("{\n\tadmin off\n\tpersist_config off\n\tlog {\n\t\tlevel ERROR\n\t}\n}\n")
	for _, policy := range []string{"random", "llm_prefix"} {
		addr, err := free()
		if err != nil {
			return nil, err
		}
		p.sites = append(p.sites, addr)
		fmt.Fprintf(&text, "http://%s {\n\treverse_proxy %s {\n\t\tlb_policy %s\n\t}\n}\n", addr, strings.Join(ups, " "), policy)
	}
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	p.cmd = exec.Command(binary, "run", "--config", file)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	for range 500 {
		if c, err := net.Dial("tcp", p.sites[len(p.sites)-1]); err == nil {
			_ = c.Close()
			return p, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.stop()
	return nil, errors.New("starting Caddy: it doesn't listen")
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(os.Interrupt)
	_ = p.cmd.Wait()
	_ = os.RemoveAll(p.dir)
}

// site is the address of the policy at a place in policies.
func (p *process) site(i int) string { return p.sites[i%len(p.sites)] }

// free is a port that nobody listens on.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// measure sends chats for a while.
func (p *process) measure(addr string, slice time.Duration, clients int) (sample, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	var sent atomic.Int64
	var failure atomic.Pointer[error]
	var all sync.WaitGroup
	before, err := p.cpu()
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	for k := range clients {
		all.Go(func() {
			for i := k; time.Since(began) < slice && failure.Load() == nil; i++ {
				if err := post(transport, addr, bodies[i%len(bodies)]); err != nil {
					failure.Store(&err)
					return
				}
				sent.Add(1)
			}
		})
	}
	all.Wait()
	if err := failure.Load(); err != nil {
		return sample{}, *err
	}
	took := time.Since(began)
	after, err := p.cpu()
	n := float64(sent.Load())
	return sample{rate: n / took.Seconds(), cpu: float64((after - before).Microseconds()) / n}, err
}

func post(transport *http.Transport, addr string, body []byte) error {
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("Caddy answered %s", res.Status)
	}
	return nil
}

// cpu is what Caddy has used so far: the scheduler's own count for each of its
// threads, ns.
func (p *process) cpu() (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("reading Caddy's CPU time: %w", errors.Join(err, os.ErrNotExist))
	}
	var sum time.Duration
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that ended
		}
		word, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading Caddy's CPU time: %w", err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}
