// Command livebench measures a simulated server on loopback with the load
// generator beside it: chats per second, chunks of streams per second, and the
// memory of idle streams. The server is a process of its own, without latency;
// the load generator speaks plain TCP and does little more than count bytes.
//
// Each speed is measured several times in turn, and the median is held against
// its bound, because others use the machine too. The exit status is 1 if a
// bound is missed.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
)

// Bounds, for two cores that serve and load.
const (
	chatsMin  = 13_000  // answers in one piece per second
	chunksMin = 200_000 // SSE chunks per second
	idleMax   = 350     // MiB of resident memory with idleStreams
)

const (
	idleStreams  = 10_000
	connections  = 32
	outputChat   = 16  // tokens of an answer in one piece
	outputStream = 256 // tokens of a streamed answer
)

func main() {
	role := flag.String("role", "", "what a child process does")
	seconds := flag.Float64("seconds", 2, "length of a measurement")
	rounds := flag.Int("rounds", 5, "measurements of each speed")
	profile := flag.String("cpuprofile", "", "file for the server's CPU profile")
	flag.Parse()
	var err error
	missed := false
	if *role != "" {
		err = serve(*role, *profile)
	} else {
		missed, err = measure(time.Duration(*seconds*float64(time.Second)), *rounds, *profile)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "livebench:", err)
	}
	if err != nil || missed {
		os.Exit(1)
	}
}

func measure(length time.Duration, rounds int, profile string) (missed bool, err error) {
	fast, err := start("fast", profile)
	if err != nil {
		return false, err
	}
	defer fast.stop()
	var chats, chunks []speed
	for range rounds {
		v, err := fast.timed(chatRequest(outputChat, false), length, countAnswers)
		if err != nil {
			return false, fmt.Errorf("loading with chats: %w", err)
		}
		chats = append(chats, v)
		if v, err = fast.timed(chatRequest(outputStream, true), length, countChunks); err != nil {
			return false, fmt.Errorf("loading with streams: %w", err)
		}
		chunks = append(chunks, v)
	}
	fast.stop()
	idle, err := idleMemory()
	if err != nil {
		return false, fmt.Errorf("opening idle streams: %w", err)
	}
	fmt.Println("| on loopback, without latency | median | least | most | per s of 2 cores | bound |\n|---|---|---|---|---|---|")
	chat := row(fmt.Sprintf("chats of %d tokens in one piece/s", outputChat), chats, chatsMin)
	stream := row(fmt.Sprintf("SSE chunks/s, %d tokens a stream", outputStream), chunks, chunksMin)
	fmt.Printf("| MiB resident with %d idle streams | %.0f | | | | at most %d |\n", idleStreams, idle, idleMax)
	for _, v := range []struct {
		name string
		ok   bool
	}{
		{"chats/s", chat >= chatsMin},
		{"SSE chunks/s", stream >= chunksMin},
		{"memory of idle streams", idle <= idleMax},
	} {
		verdict := "ok"
		if !v.ok {
			verdict, missed = "MISSED", true
		}
		fmt.Printf("%s: %s\n", v.name, verdict)
	}
	return missed, nil
}

// row prints a line of the table and returns the median by the wall clock.
// Beside it stands what the computing alone would allow: on a machine that
// others use it is more, and tells why a bound was missed.
func row(what string, values []speed, bound int) float64 {
	slices.SortFunc(values, func(a, b speed) int { return cmp.Compare(a.perCores, b.perCores) })
	alone := values[len(values)/2].perCores
	slices.SortFunc(values, func(a, b speed) int { return cmp.Compare(a.perSecond, b.perSecond) })
	median := values[len(values)/2].perSecond
	fmt.Printf("| %s | %.0f | %.0f | %.0f | %.0f | at least %d |\n", what, median, values[0].perSecond, values[len(values)-1].perSecond, alone, bound)
	return median
}
