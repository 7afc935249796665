package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program is a run of the command.
type program struct {
	lines *bufio.Reader
	stop  context.CancelFunc
	ended chan error
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	p := &program{lines: bufio.NewReader(r), stop: cancel, ended: make(chan error, 1)}
	cmd := newRoot()
	cmd.SetArgs(args)
	cmd.SetOut(w)
	go func() {
		err := cmd.ExecuteContext(ctx)
		w.Close()
		p.ended <- err
	}()
	t.Cleanup(cancel)
	return p
}

// listening reads a line and returns the URL in it.
func (p *program) listening(t *testing.T, rest string) string {
	t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("reading a line: %v, %v", err, <-p.ended)
	}
	after, ok := strings.CutPrefix(line, "vllmsim: listening on ")
	url, tail, _ := strings.Cut(strings.TrimSuffix(after, "\n"), " ")
	if !ok || tail != rest {
		t.Fatalf("line %q, want it to end with %q", line, rest)
	}
	return url
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	res, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestServersListenAnswerAndStop(t *testing.T) {
	faults := filepath.Join(t.TempDir(), "faults.yaml")
	if err := os.WriteFile(faults, []byte("# what goes wrong\n- {kind: status, status: 503, after_requests: 1, count: 1, servers: [1]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "--listen", "127.0.0.1:0", "--count", "3", "--speed", "1000", "--model", "org/name", "--faults", faults)
	urls := map[string]bool{}
	for i := range 3 {
		url := p.listening(t, "model=org/name preset=llama3.1-8b-h100")
		urls[url] = true
		var texts []string
		for request := range 3 {
			status, text := post(t, url, `{"model":"org/name","prompt":"x"}`)
			if want := i == 1 && request == 1; (status == 503) != want || !want && status != 200 {
				t.Errorf("server %d, request %d: %d %s", i, request, status, text)
			}
			texts = append(texts, text)
		}
		res, err := http.Get(url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.Contains(string(page), `model_name="org/name"`) {
			t.Errorf("the page of server %d is %.200s, %v", i, page, err)
		}
		if strings.Contains(texts[0], texts[2]) {
			t.Errorf("two answers are the same to the id: %s", texts[0])
		}
	}
	if len(urls) != 3 {
		t.Errorf("addresses are %v, want three", urls)
	}
	p.stop()
	if err := <-p.ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	for url := range urls {
		if conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
			conn.Close()
			t.Errorf("%s still listens", url)
		}
	}
}

// An answer that takes for ever doesn't hold up the end.
func TestStoppingCutsAnswersThatDoNotEnd(t *testing.T) {
	p := start(t, "--listen", "127.0.0.1:0", "--count", "1")
	url := p.listening(t, "model=llama3.1-8b preset=llama3.1-8b-h100")
	res, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x","max_tokens":100000,"ignore_eos":true,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	begin := time.Now()
	p.stop()
	if err := <-p.ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if took := time.Since(begin); took > time.Minute { // the answer takes more than ten
		t.Errorf("took %v to end", took)
	}
	if _, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Error("the stream ended well")
	}
}

func TestAPortThatIsTakenIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := start(t, "--listen", l.Addr().String(), "--count", "1")
	if line, err := p.lines.ReadString('\n'); err == nil {
		t.Errorf("it says %q", line)
	}
	if err := <-p.ended; err == nil || !strings.Contains(err.Error(), "listening") {
		t.Errorf("ended with %v", err)
	}
}
