package caddyllm

import "time"

// ledger is what one upstream got and gave, by step of time.
type ledger struct {
	steps [keptSteps]step
	last  int64 // the newest step's number
	// Of the last scrape; reason is empty if it was good.
	reason string
	status int
	engine string
}

// step sums what happened within stepSpan.
type step struct {
	number  int64 // of steps since 1970; another one's sums don't count
	reasons [len(reasons)]uint32
	// Tokens of the prompts that were decided by, and of the answers that told
	// their cached tokens: estimated, predicted to be cached, and told.
	prompt, matched               float32
	told, toldMatched, toldCached float32
	// First tokens of streamed answers, and the sums of their times, seconds.
	firsts            uint32
	predicted, actual float32
	lost              uint32 // attempts that failed
	// Of the last scrape in the step; -1 if the queue is unknown.
	waiting, running float32
}

func stepNumber(now time.Time) int64 { return now.Unix() / int64(stepSpan/time.Second) }

// step is the one that now is in, emptied if it last held another time's.
func (l *ledger) step(now time.Time) *step {
	number := stepNumber(now)
	s := &l.steps[uint64(number)%keptSteps]
	if s.number != number {
		*s = step{number: number, waiting: -1, running: -1}
		l.last = max(l.last, number)
	}
	return s
}

// window returns the steps that end with the one that now is in, oldest first,
// and empty ones where nothing happened.
func (l *ledger) window(now time.Time) (steps [keptSteps]step) {
	newest := stepNumber(now)
	for i := range steps {
		number := newest - keptSteps + 1 + int64(i)
		steps[i] = step{number: number, waiting: -1, running: -1}
		if s := &l.steps[uint64(number)%keptSteps]; s.number == number {
			steps[i] = *s
		}
	}
	return steps
}
