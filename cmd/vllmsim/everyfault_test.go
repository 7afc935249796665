package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// call asks the admin interface and decodes its answer.
func call(t *testing.T, method, url, body string, to any) int {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(to); err != nil {
		t.Fatalf("%s %s: %d: %v", method, url, res.StatusCode, err)
	}
	return res.StatusCode
}

// FC-114: each way to fail is switched while the server runs, by one request to
// a port of its own, and what a client then sees is what the field saw.
func TestFC114EveryFaultByOneCommand(t *testing.T) {
	p := start(t, "--listen", "127.0.0.1:0", "--count", "1", "--speed", "1000", "--admin", "127.0.0.1:0")
	url := p.listening(t, "model=llama3.1-8b preset=llama3.1-8b-h100")
	line, err := p.lines.ReadString('\n')
	admin, ok := strings.CutPrefix(strings.TrimSpace(line), "vllmsim: faults at ")
	if err != nil || !ok {
		t.Fatalf("line %q, %v", line, err)
	}
	ask := func(path, body string) (int, string, error) {
		res, err := http.Post(url+path, "application/json", strings.NewReader(body))
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return res.StatusCode, string(text), err
	}
	const stream = `{"prompt":"x","max_tokens":5,"ignore_eos":true,"stream":true}`
	for _, c := range []struct {
		name, faults, body string
		status             int
		has                string
		cut                bool
	}{
		{"a proxy's 429", `[{kind: status, status: 429, message: slow down, header: {Retry-After: "1"}}]`, stream, 429, "slow down", false},
		{"503 while loading", `[{kind: status, status: 503, body: "loading"}]`, stream, 503, "loading", false},
		{"error object inside a 200 stream", `[{kind: stream_error, tokens: 2}]`, stream, 200, "simulated fault", false},
		{"stream without [DONE]", `[{kind: no_done}]`, stream, 200, `"length"`, false},
		{"reset in mid-stream", `[{kind: close_stream, tokens: 2}]`, stream, 200, "data: ", true},
		{"reset before headers", `[{kind: close}]`, stream, 0, "", true},
		{"slow headers", `[{kind: delay, delay: 1ms}]`, stream, 200, "[DONE]", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var added struct{ IDs []int }
			if status := call(t, "POST", admin, c.faults, &added); status != 200 || len(added.IDs) != 1 {
				t.Fatalf("adding: %d, %v", status, added)
			}
			status, text, err := ask("/v1/completions", c.body)
			if status != c.status || (err != nil) != c.cut || !strings.Contains(text, c.has) {
				t.Errorf("answer %d %q, %v", status, text, err)
			}
			if done := strings.Contains(text, "[DONE]"); c.name == "stream without [DONE]" && done {
				t.Errorf("the stream is complete: %q", text)
			}
			var left []shown
			if status := call(t, "DELETE", admin, "", &left); status != 200 || len(left) != 0 {
				t.Errorf("removing: %d, %v", status, left)
			}
			if status, text, err := ask("/v1/completions", c.body); status != 200 || err != nil || !strings.Contains(text, "[DONE]") {
				t.Errorf("after the fault: %d %q, %v", status, text, err)
			}
		})
	}
	t.Run("frozen gauges", func(t *testing.T) {
		var added struct{ IDs []int }
		call(t, "POST", admin, `[{kind: metrics_frozen}]`, &added)
		first := get(t, url+"/metrics")
		if _, _, err := ask("/v1/completions", stream); err != nil {
			t.Fatal(err)
		}
		if get(t, url+"/metrics") != first {
			t.Error("the page changed")
		}
		call(t, "DELETE", admin, "", &[]shown{})
		if get(t, url+"/metrics") == first {
			t.Error("the page is still frozen")
		}
	})
	// These take effect a moment after the command.
	until := func(t *testing.T, what string, true func() bool) {
		t.Helper()
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		deadline := time.After(2 * time.Minute) // a port that another has just left is free after one
		for !true() {
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("never %s", what)
			}
		}
	}
	answers := func() bool {
		status, _, err := ask("/v1/completions", stream)
		return status == 200 && err == nil
	}
	t.Run("hang before headers", func(t *testing.T) {
		var added struct{ IDs []int }
		call(t, "POST", admin, `[{kind: hang}]`, &added)
		ended := make(chan error, 1)
		go func() {
			_, _, err := ask("/v1/completions", stream)
			ended <- err
		}()
		until(t, "taken in", func() bool { return get(t, url+"/load") == `{"server_load":1}` })
		select {
		case err := <-ended:
			t.Errorf("ended with %v", err)
		default:
		}
		call(t, "DELETE", admin, "", &[]shown{})
		if err := <-ended; err == nil {
			t.Error("a hanging request was answered")
		}
	})
	t.Run("refused connections", func(t *testing.T) {
		var added struct{ IDs []int }
		call(t, "POST", admin, `[{kind: refuse}]`, &added)
		until(t, "refused", func() bool {
			_, _, err := ask("/v1/completions", stream)
			return errors.Is(err, syscall.ECONNREFUSED)
		})
		call(t, "DELETE", admin, "", &[]shown{})
		until(t, "open again", answers)
	})
	t.Run("restart", func(t *testing.T) {
		const counted = `vllm:request_success_total{engine="0",finished_reason="length",model_name="llama3.1-8b"} 0.0`
		if !answers() || strings.Contains(get(t, url+"/metrics"), counted) {
			t.Error("nothing is counted before the restart")
		}
		var added struct{ IDs []int }
		call(t, "POST", admin, `[{kind: restart}]`, &added)
		var last string // what the page told, or why it didn't
		defer func() {
			if t.Failed() {
				t.Log(last)
			}
		}()
		until(t, "restarted", func() bool {
			res, err := http.Get(url + "/metrics")
			if err != nil {
				last = err.Error()
				return false
			}
			defer res.Body.Close()
			page, err := io.ReadAll(res.Body)
			last = fmt.Sprintf("%v: %s", err, page)
			return err == nil && strings.Contains(string(page), counted)
		})
		call(t, "DELETE", admin, "", &[]shown{})
		until(t, "answering", answers)
	})
	t.Run("the port doesn't lead to the faults", func(t *testing.T) {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			var answer any
			if status := call(t, method, url+"/faults", "[]", &answer); status != 404 {
				t.Errorf("%s /faults at the server's port is %d", method, status)
			}
		}
	})
	p.stop()
	if err := <-p.ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
