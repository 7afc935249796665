package main

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
	// startLimit is how long a child may take to be ready.
	startLimit = 20 * time.Second
	// maxLogTail bounds what an error shows of a child's log.
	maxLogTail = 2 << 10
)

// child is a process that is stopped with everything it started. It has a
// process group of its own, so that Ctrl-C at a terminal reaches only the
// parent, which then stops the children in order.
type child struct {
	name  string
	log   string // file with its stderr, empty if that is the parent's
	cmd   *exec.Cmd
	lines chan string   // of stdout; closed at its end
	ended chan struct{} // closed when the process has ended
	err   error         // of Wait, after ended
}

// start runs a program. Its standard output is read line by line into lines
// (those that nobody takes are dropped), its standard error goes to a log in
// dir, or to stderr if dir is empty. The two goroutines end with the process.
func start(dir, path string, env []string, args ...string) (*child, error) {
	c := &child{name: filepath.Base(path), lines: make(chan string, 64), ended: make(chan struct{})}
	c.cmd = exec.Command(path, args...)
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.SysProcAttr = ownGroup()
	// A grandchild that keeps the pipe open must not keep us waiting.
	c.cmd.WaitDelay = stopGrace
	c.cmd.Stderr = os.Stderr
	if dir != "" {
		c.log = filepath.Join(dir, c.name+".log")
		f, err := os.Create(c.log)
		if err != nil {
			return nil, fmt.Errorf("making a log: %w", err)
		}
		defer f.Close()
		c.cmd.Stderr = f
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
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
		close(c.ended)
	}()
	return c, nil
}

func (c *child) read(out io.Reader) {
	defer close(c.lines)
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		select {
		case c.lines <- scanner.Text():
		default:
		}
	}
}

// stop ends the process and waits for it. It may be called more than once.
func (c *child) stop() {
	select {
	case <-c.ended:
		return
	default:
	}
	interruptGroup(c.cmd.Process)
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		killGroup(c.cmd.Process)
		<-c.ended
	}
}

// failure explains why the process isn't there, with the end of its log.
func (c *child) failure(what string) error {
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

// await calls ready until it is true, the process ends, or time is up.
func (c *child) await(ctx context.Context, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-c.ended:
			return c.failure("ended at once")
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return c.failure(fmt.Sprintf("not ready after %v", startLimit))
			}
			return ctx.Err()
		}
	}
	return nil
}
