package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

// maxMetricsBytes bounds a page of metrics.
const maxMetricsBytes = 4 << 20

// simulators are the simulated vLLM servers of one process.
type simulators struct {
	*process.Child
	addresses []string // host:port
}

// startSimulators starts count servers on free ports and waits until they
// listen.
func startSimulators(ctx context.Context, dir, path string, count int, args ...string) (*simulators, error) {
	c, err := process.Start(process.Spec{Path: path, Dir: dir, Args: append([]string{"--listen", "127.0.0.1:0", "--count", strconv.Itoa(count)}, args...)})
	if err != nil {
		return nil, err
	}
	s := &simulators{Child: c}
	err = c.Await(ctx, func() bool {
		for len(s.addresses) < count {
			select {
			case line, ok := <-c.Lines:
				if address := listening(line); address != "" {
					s.addresses = append(s.addresses, address)
				}
				if !ok {
					return false
				}
			default:
				return false
			}
		}
		return true
	})
	if err != nil {
		c.Stop()
		return nil, err
	}
	return s, nil
}

// listening finds the address in a line such as
// "vllmsim: listening on http://127.0.0.1:41233 model=…"; empty if there is none.
func listening(line string) string {
	_, rest, ok := strings.Cut(line, "listening on ")
	if !ok {
		return ""
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return ""
	}
	u, err := url.Parse(fields[0])
	if err != nil {
		return ""
	}
	return u.Host
}

// requests asks each server how many requests it has finished.
func (s *simulators) requests(ctx context.Context) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var all []int64
	for _, address := range s.addresses {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
		if err != nil {
			return nil, fmt.Errorf("asking %s: %w", address, err)
		}
		res, err := client.Do(req)
		if err != nil {
			return nil, fmt.Errorf("asking %s: %w", address, err)
		}
		n, err := finished(io.LimitReader(res.Body, maxMetricsBytes))
		_ = res.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("reading the metrics of %s: %w", address, err)
		}
		all = append(all, n)
	}
	return all, nil
}

// finished sums vllm:request_success_total over its labels.
func finished(page io.Reader) (int64, error) {
	sum := 0.0
	scanner := bufio.NewScanner(page)
	for scanner.Scan() {
		line := scanner.Text()
		rest, ok := strings.CutPrefix(line, "vllm:request_success_total")
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil || !(value >= 0 && value < 1<<53) {
			return 0, errors.New("parsing the count of requests: not a count")
		}
		sum += value
	}
	return int64(min(sum, 1<<53)), scanner.Err()
}
