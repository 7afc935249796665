package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// newOperated starts a gateway whose admin API listens on a socket, and which
// has the status page.
func newOperated(t *testing.T, s site) (g *gateway, admin string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	admin = "unix/" + filepath.Join(dir, "a")
	s.admin = admin
	s.before += "\nhandle_path /llm/* {\nllm_status\n}"
	return s.start(t), admin
}

// caddyCommand runs a subcommand as the caddy binary does.
func caddyCommand(t *testing.T, stdin []byte, name string, args ...string) (string, error) {
	t.Helper()
	cmd := &cobra.Command{Use: name, SilenceErrors: true, SilenceUsage: true}
	caddycmd.Commands()[name].CobraFunc(cmd)
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetIn(bytes.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	err := cmd.Execute()
	return out.String(), err
}

type explained struct {
	Fallback string
	Choice   struct {
		Upstream, Reason string
		DecidedBy        string  `json:"decided_by"`
		First            float64 `json:"predicted_first_token_seconds"`
	}
	Upstreams []struct {
		Address, Standing string
		Queue             float64 `json:"queue_seconds"`
		Prefill           float64 `json:"prefill_seconds"`
		Stall             float64 `json:"stall_seconds"`
		Copy              float64 `json:"copy_seconds"`
		Memory            float64 `json:"memory_seconds"`
		Step              float64 `json:"step_seconds"`
		Cost              float64 `json:"cost_seconds"`
	}
}

// dialogues are requests whose prompts grow turn by turn: of an agent with
// tools, where the data is, and of help desks.
func dialogues(t *testing.T) (all [][]byte) {
	t.Helper()
	const recorded = "../../../../shared/data/text/taubench_gpt4o_airline.json.gz"
	if file, err := os.Open(recorded); err != nil {
		t.Logf("without a real dialogue: %v", err)
	} else {
		defer file.Close()
		text, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		var runs []struct{ Traj []json.RawMessage }
		if err := json.NewDecoder(text).Decode(&runs); err != nil {
			t.Fatal(err)
		}
		for _, run := range runs[:3] {
			for turn := 2; turn <= min(len(run.Traj), 12); turn += 2 {
				body, err := json.Marshal(map[string]any{"model": model, "max_tokens": 4, "messages": run.Traj[:turn]})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, body)
			}
		}
	}
	for i := range 12 {
		first := []message{{"system", strings.Repeat(fmt.Sprint("You help desk ", i%3, ". "), 60)}, {"user", fmt.Sprint("Ticket ", i)}}
		all = append(all, chat(first, nil), chat(append(first[:2:2], message{"assistant", "Yes."}, message{"user", "And then?"}), nil))
	}
	return all
}

// What llm-explain says is what the gateway then does, with terms that add up.
func TestExplainIsTheChoiceTheGatewayMakes(t *testing.T) {
	// No scrape may change the picture between a question and its request.
	g, admin := newOperated(t, site{upstreams: addrs(newEngines(t, 3)), policy: "scrape off"})
	reasons := make(map[string]int)
	for i, body := range dialogues(t) {
		text, err := caddyCommand(t, body, "llm-explain", "--address", admin, "--json")
		if err != nil {
			t.Fatal(err)
		}
		var e explained
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		least := math.Inf(1)
		for _, u := range e.Upstreams {
			if sum := u.Queue + u.Prefill + u.Stall + u.Copy + u.Memory + u.Step; math.Abs(sum-u.Cost) > 5e-6 {
				t.Errorf("body %d: the terms of %s add up to %v, not to %v", i, u.Address, sum, u.Cost)
			}
			if u.Standing == "sound" {
				least = min(least, u.Cost)
			}
		}
		if first := e.Upstreams[0]; len(e.Upstreams) != 3 || first.Address != e.Choice.Upstream || first.Cost > least*1.03+1e-5 {
			t.Errorf("body %d: the choice is %+v among %+v", i, e.Choice, e.Upstreams)
		}
		a := g.post("/v1/chat/completions", body)
		if want := fmt.Sprintf("upstream=%s; reason=%s;", e.Choice.Upstream, e.Choice.Reason); a.status != 200 || !strings.HasPrefix(a.route, want) {
			t.Errorf("body %d: explained as %s, sent with %d as %s", i, want, a.status, a.route)
		}
		reasons[e.Choice.Reason]++
		g.idle()
	}
	if reasons["prefix"] == 0 || reasons["cold"] == 0 {
		t.Errorf("the bodies went on for %v; a test that means something has both", reasons)
	}
}

// operatorReport is what tests read of the state.
type operatorReport struct {
	States []struct {
		Name      string
		Decisions int
		Reasons   map[string]int
		Cached    struct {
			Actual *float64 `json:"actual_ratio"`
		}
		Upstreams []struct {
			Address, State, Hint string
			Available            bool
			Waiting              *float64 `json:"waiting_requests"`
			CacheBlocks          int      `json:"cache_blocks"`
		}
		Last []struct{ Upstream, Reason, Outcome, Prompt string } `json:"last_decisions"`
	}
}

func operators(t *testing.T, text string) (r operatorReport) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return r
}

// The page, the admin API and the command tell the same, and none of them a
// prompt.
func TestOperatorsSeeWhatWasDecided(t *testing.T) {
	const secret = "xylophone concerto"
	engines := newEngines(t, 3)
	g, admin := newOperated(t, site{upstreams: addrs(engines), proxy: "lb_retries 2\nfail_duration 1m"})
	post := func(i int, text string) answer {
		a := g.post("/v1/chat/completions", chat(user(text), nil))
		if a.status != 200 {
			t.Fatalf("request %d: %d %s", i, a.status, a.body)
		}
		return a
	}
	for i := range 6 {
		post(i, strings.Repeat(secret+" ", 200)+strings.Repeat("!", i*300))
	}
	// One dies while it holds a prompt, is tried for it, and Caddy leaves it
	// alone for a while.
	for i, held := 0, false; !held && i < 100; i++ {
		text := fmt.Sprint(i, strings.Repeat(" another prompt", 100))
		if held = strings.HasPrefix(post(i, text).route, "upstream="+engines[2].addr); held {
			g.idle()
			engines[2].server.Close()
			post(i, text)
		}
	}
	g.idle()
	page := g.get("/llm/state.json")
	table, err := caddyCommand(t, nil, "llm-status", "--address", admin)
	if err != nil {
		t.Fatal(err)
	}
	text, err := caddyCommand(t, nil, "llm-status", "--address", admin, "--json")
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"the page": page.body, "the table": table, "the admin API": text} {
		if strings.Contains(text, "xylophone") || strings.Contains(text, "another") {
			t.Errorf("%s has text of a prompt", what)
		}
		if !strings.Contains(text, engines[0].addr) {
			t.Errorf("%s doesn't name %s:\n%s", what, engines[0].addr, text)
		}
	}
	for what, text := range map[string]string{"the page": page.body, "the admin API": text} {
		r := operators(t, text)
		s := r.States[0]
		if len(r.States) != 1 || len(s.Upstreams) != 3 || s.Decisions < 8 || s.Reasons["prefix"] < 5 || len(s.Last) != s.Decisions {
			t.Errorf("%s: %+v", what, s)
		}
		dead := 0
		for _, u := range s.Upstreams {
			if u.State == "unavailable" && !u.Available && u.Address == engines[2].addr {
				dead++
			}
		}
		if dead != 1 {
			t.Errorf("%s tells of the upstreams %+v, want the third to be unavailable", what, s.Upstreams)
		}
	}
	body := chat(user(strings.Repeat(secret+" ", 200)), nil)
	out, err := caddyCommand(t, body, "llm-explain", "--address", admin)
	if err != nil || !strings.Contains(out, "goes to ") || !strings.Contains(out, engines[2].addr+"  unavailable") {
		t.Errorf("llm-explain prints\n%s%v", out, err)
	}
}

// A reload ends event streams, so that pages connect to the new config; what
// was decided before is still there.
func TestEventsEndWithTheConfig(t *testing.T) {
	g, _ := newOperated(t, site{upstreams: addrs(newEngines(t, 2))})
	g.post("/v1/chat/completions", chat(user(text("reload", 400)), nil))
	for range 2 {
		var res *http.Response
		var lines *bufio.Reader
		var first, line string
		err := again(func() (err error) {
			if res, err = g.client.Get("http://gateway/llm/events"); err != nil {
				return err
			}
			body := res.Body
			t.Cleanup(func() { body.Close() })
			lines = bufio.NewReader(body)
			if first, err = lines.ReadString('\n'); err != nil {
				return err
			}
			line, err = lines.ReadString('\n')
			return err
		})
		if err != nil || first != "retry: 1000\n" {
			t.Fatalf("a stream begins with %q, %v", first, err)
		}
		if s := operators(t, strings.TrimPrefix(line, "data: ")).States[0]; len(s.Last) != 1 || len(s.Upstreams) != 2 {
			t.Errorf("the first event is %s", line)
		}
		if err := load(strings.Replace(g.text, "expose X-LLM", "expose X-LLM\nmax_body 4MiB", 1)); err != nil {
			t.Fatal(err)
		}
		g.text = strings.Replace(g.text, "level DEBUG", "level INFO", 1)
		if _, err := io.Copy(io.Discard, lines); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the reload ends a stream with %v", err)
		}
	}
}
