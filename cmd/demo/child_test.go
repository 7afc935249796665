package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/process"
)

// TestMain makes this binary the child of its own tests.
func TestMain(m *testing.M) {
	switch os.Getenv("DEMO_TEST_CHILD") {
	case "":
		os.Exit(m.Run())
	case "serves":
		fmt.Println("vllmsim: listening on http://127.0.0.1:1 model=m")
		fmt.Println("vllmsim: listening on http://127.0.0.1:2 model=m")
		select {}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
		fmt.Println("vllmsim: listening on http://127.0.0.1:1 model=m")
		select {}
	case "fails":
		fmt.Fprintln(os.Stderr, "the port is taken")
		os.Exit(3)
	}
}

func self(t *testing.T, role string) string {
	t.Helper()
	t.Setenv("DEMO_TEST_CHILD", role)
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func ended(c *process.Child) bool {
	select {
	case <-c.Ended:
		return true
	default:
		return false
	}
}

func TestChildrenAreGoneAfterStop(t *testing.T) {
	for role, count := range map[string]int{"serves": 2, "stubborn": 1} {
		s, err := startSimulators(t.Context(), t.TempDir(), self(t, role), count)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.addresses, " "); !strings.HasPrefix("127.0.0.1:1 127.0.0.1:2", got) || len(s.addresses) != count {
			t.Errorf("%s: addresses = %q, want %d", role, got, count)
		}
		s.Stop()
		s.Stop()
		if !ended(s.Child) {
			t.Errorf("%s: still there after stop", role)
		}
		if err := syscall.Kill(s.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s: a signal to the process = %v, want %v", role, err, syscall.ESRCH)
		}
	}
}

func TestAChildThatEndsAtOnceIsExplainedByItsLog(t *testing.T) {
	_, err := startSimulators(t.Context(), t.TempDir(), self(t, "fails"), 1)
	if err == nil || !strings.Contains(err.Error(), "ended at once") || !strings.Contains(err.Error(), "the port is taken") {
		t.Errorf("startSimulators = %v, want that it ended, with its log", err)
	}
}

func TestCtrlCWhileWaitingStopsTheChild(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := process.Start(process.Spec{Path: self(t, "serves"), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	err = c.Await(ctx, func() bool { cancel(); return false })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("await = %v, want %v", err, context.Canceled)
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	if _, err := findPrograms(t.TempDir()); err == nil || !strings.Contains(err.Error(), "vllmsim") || !strings.Contains(err.Error(), "make build") {
		t.Errorf("findPrograms(an empty folder) = %v, want the program and how to make it", err)
	}
}
