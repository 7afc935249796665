package vllmapi

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmmetrics"
)

// listening is a server on the network whose faults take effect when the test
// says so.
type listening struct {
	*Server
	url       string
	state     serverState
	restarted map[*armedFault]bool
}

func listen(t *testing.T) *listening {
	t.Helper()
	e, err := simengine.New(benchEngine)
	if err != nil {
		t.Fatal(err)
	}
	driver := live.New(e, live.Options{})
	exporter, err := vllmmetrics.New(vllmmetrics.Options{Model: "m", Start: time.Unix(1, 0), Stats: func(int) simengine.Stats { return driver.Stats() }})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Model: "m", Driver: driver, Exporter: exporter})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Faults().Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, done := s.HTTPServer(time.Minute), make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return &listening{s, "http://" + l.Addr().String(), sound, map[*armedFault]bool{}}
}

// at lets faults do what is due.
func (l *listening) at(now time.Time) {
	wanted, restart, _ := l.faults.plan(now, l.restarted)
	l.state = l.faults.apply(l.state, wanted, restart)
}

// health is the status of /health, 0 if nobody answers.
func (l *listening) health(t *testing.T) int {
	t.Helper()
	res, err := http.Get(l.url + "/health")
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

func TestAPortThatRefusesAndOpensAgain(t *testing.T) {
	l := listen(t)
	idle, err := net.Dial("tcp", l.url[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if got := l.health(t); got != 200 { // when it was answered, idle was let in before it
		t.Fatalf("health is %d before all faults", got)
	}
	begin := time.Now()
	if _, err := l.Faults().Add(Fault{Kind: FaultRefuse, At: time.Minute, For: time.Minute}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 200}, {61 * time.Second, 0}, {90 * time.Second, 0}, {121 * time.Second, 200}, {122 * time.Second, 200}} {
		l.at(begin.Add(c.after))
		if got := l.health(t); got != c.want {
			t.Errorf("after %v health is %d, want %d", c.after, got, c.want)
		}
	}
	if n, err := idle.Read(make([]byte, 1)); err == nil {
		t.Errorf("a connection from before lives: %d bytes", n)
	}
}

// A restart that takes its time: nobody answers until the new process listens,
// and it knows nothing.
func TestARestartThatTakesTime(t *testing.T) {
	l := listen(t)
	l.store.put("resp_1", nil, []byte("{}"))
	if err := l.adapters.load(adapter{"late", "late"}, false, "m"); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if _, err := l.Faults().Add(Fault{Kind: FaultRestart, For: 30 * time.Second}); err != nil {
		t.Fatal(err)
	}
	l.at(begin.Add(time.Second))
	if got := l.health(t); got != 0 {
		t.Errorf("health is %d while the server starts", got)
	}
	l.at(begin.Add(31 * time.Second))
	if got := l.health(t); got != 200 {
		t.Errorf("health is %d after the start", got)
	}
	if l.store.get("resp_1") != nil || l.adapters.has("late") {
		t.Error("a new process knows an answer, or an adapter that was loaded into the old one")
	}
	families, err := l.c.Exporter.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if v := f.GetMetric()[0].GetGauge().GetValue(); f.GetName() == "process_start_time_seconds" && v < float64(begin.Unix()) {
			t.Errorf("the process is from %v, before its restart", v)
		}
	}
	l.at(begin.Add(32 * time.Second))
	if got := l.health(t); got != 200 || len(l.restarted) != 1 {
		t.Errorf("health is %d, %d restarts", got, len(l.restarted))
	}
}

// Someone else may take the port while it is shut: it is tried again.
func TestAPortThatWasTakenMeanwhile(t *testing.T) {
	l := listen(t)
	remove, err := l.Faults().Add(Fault{Kind: FaultRefuse})
	if err != nil {
		t.Fatal(err)
	}
	l.at(time.Now().Add(time.Second))
	thief, err := net.Listen("tcp", l.url[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	remove()
	if l.at(time.Now()); !l.state.shut {
		t.Error("the port is open though someone else has it")
	}
	thief.Close()
	if l.at(time.Now()); l.state.shut || l.health(t) != 200 {
		t.Error("the port is still shut")
	}
}
