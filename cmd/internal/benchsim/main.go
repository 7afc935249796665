// Benchsim measures what it costs to run many engines on the virtual clock: a
// table over the number of replicas, then a line for each bound with ok or
// MISSED. Its exit status is 1 if a bound was missed.
//
// Each row is a process of its own with one processor. Time is the user CPU time
// of that process and memory its peak resident set, as the kernel counts them,
// so that other processes matter little; they still share caches and memory
// with it. First tokens and ends are told in order of time over all replicas.
//
// Arrivals are known half a second before their time, as where a trace is
// replayed under a policy that looks at nothing, so that replicas may run ahead.
// The last row is what it costs where each is decided when it comes.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

func main() {
	run := bench
	if len(os.Args) == 4 {
		run = child
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "benchsim:", err)
		os.Exit(1)
	}
}

// row is a size to run, and what may at most be spent on it, if bounded.
type row struct {
	replicas, requests int
	known              time.Duration // before an arrival
	userMax            time.Duration
	mibMax             int64
}

// The first and the last of the table are compared; all have at least as many
// requests for each replica as fill its memory four times.
var rows = []row{
	{replicas: 10, requests: 200_000, known: known},
	{replicas: 100, requests: 200_000, known: known},
	{replicas: 1000, requests: 1_000_000, known: known},
	{replicas: 5000, requests: 5_000_000, known: known, userMax: 60 * time.Second, mibMax: 8 << 10},
	{replicas: 1000, requests: 200_000, known: known, userMax: 5 * time.Second, mibMax: 1 << 10},
	{replicas: 5000, requests: 1_000_000},
}

const known = 500 * time.Millisecond

// growthMax is how much more a request may cost with 5,000 replicas than with 10.
const growthMax = 2.0

// spent is what a row took.
type spent struct {
	User time.Duration
	MiB  int64
	result
}

func (s spent) micros(r row) float64 { return float64(s.User.Microseconds()) / float64(r.requests) }

func bench() error {
	fmt.Printf("prompts of %d tokens, half shared by %d families, %d output tokens, %d KV tokens a replica, %g requests/s each\n\n",
		promptTokens, families, outputTokens, kvTokens, rate)
	fmt.Printf("%8s  %9s  %8s  %9s  %9s  %8s  %9s  %9s\n", "replicas", "requests", "known, s", "user, s", "us/request", "peak MiB", "cached, %", "TTFT, ms")
	all := make([]spent, len(rows))
	for i, r := range rows {
		s, err := measure(r)
		if err != nil {
			return fmt.Errorf("running %d replicas: %w", r.replicas, err)
		}
		all[i] = s
		fmt.Printf("%8d  %9d  %8g  %9.2f  %10.2f  %8d  %9.1f  %9.2f\n", r.replicas, r.requests, r.known.Seconds(), s.User.Seconds(), s.micros(r), s.MiB, s.CachedPercent, s.TTFTMs)
	}
	fmt.Println()
	missed := false
	report := func(ok bool, format string, values ...any) {
		word := "ok"
		if !ok {
			word, missed = "MISSED", true
		}
		fmt.Printf("%-7s %s\n", word, fmt.Sprintf(format, values...))
	}
	for i, r := range rows {
		if r.userMax == 0 {
			continue
		}
		s := all[i]
		report(s.User <= r.userMax, "%d x %d: %.1f s of user time, at most %.0f", r.replicas, r.requests, s.User.Seconds(), r.userMax.Seconds())
		report(s.MiB <= r.mibMax, "%d x %d: %d MiB, at most %d", r.replicas, r.requests, s.MiB, r.mibMax)
	}
	growth := all[3].micros(rows[3]) / all[0].micros(rows[0])
	report(growth <= growthMax, "a request with %d replicas costs %.2f times that with %d, at most %g", rows[3].replicas, growth, rows[0].replicas, growthMax)
	if missed {
		return fmt.Errorf("a bound was missed")
	}
	return nil
}

// measure runs a row in a process of its own.
func measure(r row) (s spent, err error) {
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	c := exec.Command(self, strconv.Itoa(r.replicas), strconv.Itoa(r.requests), r.known.String())
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(out, &s.result); err != nil {
		return s, err
	}
	s.User = c.ProcessState.UserTime()
	if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.MiB = usage.Maxrss >> 10 // Linux counts KiB
	}
	return s, nil
}

func child() error {
	runtime.GOMAXPROCS(1)
	replicas, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	requests, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	known, err := time.ParseDuration(os.Args[3])
	if err != nil {
		return err
	}
	l, err := newLoad(replicas, requests, known)
	if err != nil {
		return err
	}
	r, err := l.run()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
