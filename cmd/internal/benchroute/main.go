// Benchroute measures what a decision costs: a table over upstreams and size of
// the index, then a line for each bound with ok or MISSED. Its exit status is 1
// if a bound was missed.
//
// A decision is Pick for a prompt of 128 blocks: the look-up of all upstreams'
// matches, the choice, the reservation and the insert. Hot, the prompts are
// those of 64 sessions that go on, so that what is touched stays in the
// processor's caches; cold, they are drawn from all that the index holds. The
// router sends them to engines that prefill for half of their time and then
// answer, in a time of their own, and reads a page of each once a second: so
// it meets as many queues and answers under way as it does for users.
//
// Time is CPU time of the measuring thread, as the kernel counts it, less what
// asking for it takes, so that other processes matter little; they still share
// caches and memory with it. Beside it stands what the least work would take in
// the same run: looking up and setting 128 bits of as many blocks in a Go map.
package main

import (
	"fmt"
	"os"
	"slices"
	"time"
)

func main() {
	if err := bench(); err != nil {
		fmt.Fprintln(os.Stderr, "benchroute:", err)
		os.Exit(1)
	}
}

// row is a size to measure, and what a decision there may at most take.
type row struct {
	upstreams, entries int
	cold               bool
	max                time.Duration // 0: no bound
}

var rows = []row{
	{8, 1_000_000, false, 10 * time.Microsecond},
	{8, 1_000_000, true, 0},
	{8, 10_000_000, false, 0},
	{8, 10_000_000, true, 0},
	{64, 1_000_000, false, 0},
	{512, 1_000_000, false, 15 * time.Microsecond},
	{512, 1_000_000, true, 0},
	{512, 10_000_000, false, 0},
	{512, 10_000_000, true, 0},
}

const (
	// rounds are how often each measurement is repeated, alternating with the
	// map's; the median counts.
	rounds = 7
	picks  = 4000 // of a round
	// settling is how many are sent before anything is measured.
	settling = 3 * picks

	picksMin   = 100_000 // a second
	bytesMax   = 24.5
	growthMax  = 2.0 // of a decision that finds eight times the blocks
	goroutines = 64
)

func bench() error {
	fmt.Printf("decisions for prompts of %d blocks, microseconds of CPU time, median of %d rounds\n\n", blocks, rounds)
	fmt.Printf("%9s  %10s  %5s  %7s  %7s  %7s  %9s  %6s\n", "upstreams", "entries", "table", "pick", "release", "map", "pick/map", "allocs")
	var verdicts []verdict
	for _, r := range rows {
		d := newDesk(r)
		pick, release, floor := d.measure()
		allocs := d.allocs()
		table := "hot"
		if r.cold {
			table = "cold"
		}
		fmt.Printf("%9d  %10d  %5s  %7.2f  %7.2f  %7.2f  %9.2f  %6.2f\n", r.upstreams, d.held(), table,
			micros(pick), micros(release), micros(floor), float64(pick)/float64(floor), allocs)
		if r.max > 0 {
			verdicts = append(verdicts, verdict{pick <= r.max, fmt.Sprintf("%d upstreams, %s: %.1f us, about %.0f", r.upstreams, table, micros(pick), micros(r.max))})
		}
		verdicts = append(verdicts, verdict{allocs == 0, fmt.Sprintf("%d upstreams, %d entries, %s: %.2f allocations, 0", r.upstreams, d.held(), table, allocs)})
		d.close()
	}
	growth, bytes := growth(), perEntry()
	steady, unseen := throughput()
	verdicts = append(verdicts,
		verdict{growth <= growthMax, fmt.Sprintf("128 blocks found instead of 16: %.2f times as long, at most %.0f", growth, growthMax)},
		verdict{bytes <= bytesMax, fmt.Sprintf("%.1f bytes an entry, about 24", bytes)},
		verdict{steady >= picksMin, fmt.Sprintf("%.0f picks, with first byte and end, a second of CPU time from %d goroutines, at least %d", steady, goroutines, picksMin)})
	fmt.Printf("\nof prompts that nobody has seen and that are cancelled at once, %.0f picks a second\n\n", unseen)
	return judge(verdicts)
}

type verdict struct {
	ok   bool
	text string
}

func judge(all []verdict) error {
	missed := 0
	for _, v := range all {
		word := "ok"
		if !v.ok {
			word = "MISSED"
			missed++
		}
		fmt.Printf("%-7s %s\n", word, v.text)
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d bounds missed", missed, len(all))
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
