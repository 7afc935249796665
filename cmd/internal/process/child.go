// Package process runs programs that are stopped together with everything they
// started: the servers and the gateway of a demonstration or a measurement.
package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// stopGrace is how long a child may take to stop before it is killed.
	stopGrace = 3 * time.Second
	// startLimit is how long a child may take to be ready unless its Spec says
	// otherwise.
	startLimit = 20 * time.Second
	// maxLines is how many lines wait to be taken.
	maxLines = 4096
	// maxLogTail bounds what an error shows of a child's log.
	maxLogTail = 2 << 10
)

// Child is a process that is stopped with everything it started. It has a
// process group of its own, so that Ctrl-C at a terminal reaches only the
// parent, which then stops the children in order.
type Child struct {
	name  string
	log   string // file with its stderr, empty if that is the parent's
	limit time.Duration
	cmd   *exec.Cmd
	// Lines are those of standard output; closed at its end.
	Lines chan string
	// Ended is closed when the process has ended.
	Ended chan struct{}
	err   error // of Wait, after Ended
}

// Spec says what to run and how. Only Path is required.
type Spec struct {
	Path string
	Args []string
	Env  []string // added to this process's own
	// Dir gets a log of standard error; without it that goes to ours.
	Dir string
	// LogOutput puts standard output into the log too, instead of into Lines.
	LogOutput bool
	// StartLimit bounds Await; zero means 20 seconds.
	StartLimit time.Duration
}

// Start runs a program. Its standard output is read line by line into Lines;
// those that nobody takes are dropped. The two goroutines end with the process.
func Start(s Spec) (*Child, error) {
	c := &Child{name: filepath.Base(s.Path), limit: s.StartLimit, Lines: make(chan string, maxLines), Ended: make(chan struct{})}
	if c.limit == 0 {
		c.limit = startLimit
	}
	c.cmd = exec.Command(s.Path, s.Args...)
	c.cmd.Env = append(os.Environ(), s.Env...)
	c.cmd.SysProcAttr = ownGroup()
	// A grandchild that keeps the pipe open must not keep us waiting.
	c.cmd.WaitDelay = stopGrace
	c.cmd.Stderr = os.Stderr
	if s.Dir != "" {
		c.log = filepath.Join(s.Dir, c.name+".log")
		f, err := os.Create(c.log)
		if err != nil {
			return nil, fmt.Errorf("making a log: %w", err)
		}
		defer f.Close()
		c.cmd.Stderr = f
	}
	var out io.Reader = strings.NewReader("")
	if s.LogOutput {
		c.cmd.Stdout = c.cmd.Stderr
	} else {
		pipe, err := c.cmd.StdoutPipe()
		if err != nil {
			return nil, fmt.Errorf("starting %s: %w", c.name, err)
		}
		out = pipe
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.read(out)
	}()
	go func() {
		<-read
		c.err = c.cmd.Wait()
		close(c.Ended)
	}()
	return c, nil
}

func (c *Child) read(out io.Reader) {
	defer close(c.Lines)
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		select {
		case c.Lines <- scanner.Text():
		default:
		}
	}
}

// Stop ends the process and waits for it. It may be called more than once.
func (c *Child) Stop() {
	select {
	case <-c.Ended:
		return
	default:
	}
	interruptGroup(c.cmd.Process)
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-c.Ended:
	case <-timer.C:
		killGroup(c.cmd.Process)
		<-c.Ended
	}
}

// Kill ends the process and what it started at once, as a crash or the kernel's
// memory killer would, and waits for its end.
func (c *Child) Kill() {
	killGroup(c.cmd.Process)
	<-c.Ended
}

// PID is the process's id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Failure explains why the process isn't there, with the end of its log.
func (c *Child) Failure(what string) error {
	err := fmt.Errorf("%s: %s", c.name, what)
	if c.log == "" {
		return err
	}
	text, readErr := os.ReadFile(c.log)
	if readErr != nil || len(text) == 0 {
		return err
	}
	return errors.Join(err, errors.New(strings.TrimSpace(string(text[max(0, len(text)-maxLogTail):]))))
}

// Await calls ready until it is true, the process ends, or time is up.
func (c *Child) Await(ctx context.Context, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-c.Ended:
			return c.Failure("ended at once")
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return c.Failure(fmt.Sprintf("not ready after %v", c.limit))
			}
			return ctx.Err()
		}
	}
	return nil
}
