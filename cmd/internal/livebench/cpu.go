package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cores is how many serve and load when the bounds apply.
const cores = 2

// cpu is the time that the server and this process have computed.
func (c *child) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is %q", c.cmd.Process.Pid, text)
	}
	const tick = 10 * time.Millisecond // Linux's USER_HZ is 100
	var sum time.Duration
	for _, field := range fields[11:13] { // utime, stime
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * tick
	}
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return 0, err
	}
	return sum + time.Duration(own.Utime.Nano()+own.Stime.Nano()), nil
}

// speed is what one measurement found.
type speed struct {
	perSecond float64 // of the wall clock
	perCores  float64 // of computing on all cores: what it would be if nobody else used them
}

// timed measures a load on a server.
func (c *child) timed(request []byte, length time.Duration, count reader) (speed, error) {
	before, err := c.cpu()
	if err != nil {
		return speed{}, err
	}
	begin := time.Now()
	n, err := load(c.addr, request, length, count)
	if err != nil {
		return speed{}, err
	}
	took := time.Since(begin)
	after, err := c.cpu()
	return speed{float64(n) / took.Seconds(), float64(n) * cores / (after - before).Seconds()}, err
}
