package caddyllm

// sums are those of a window, by step and as a whole.
type sums struct {
	steps [keptSteps]step
	lost  int
}

func (s *sums) of(window [keptSteps]step) {
	s.steps = window
	for i := range window {
		s.lost += int(window[i].lost)
	}
}

func (s *sums) add(other *sums) {
	s.lost += other.lost
	for i := range s.steps {
		s.steps[i].add(&other.steps[i])
	}
}

// add sums what adds up; of the engines' queues, no sum is shown.
func (s *step) add(other *step) {
	for i, n := range other.reasons {
		s.reasons[i] += n
	}
	s.prompt += other.prompt
	s.matched += other.matched
	s.told += other.told
	s.toldMatched += other.toldMatched
	s.toldCached += other.toldCached
	s.firsts += other.firsts
	s.predicted += other.predicted
	s.actual += other.actual
}

func (s *step) decisions() (n int) {
	for _, count := range s.reasons {
		n += int(count)
	}
	return n
}

func (s *step) firstToken() firstTokenReport {
	return firstTokenReport{
		Count:            int(s.firsts),
		PredictedSeconds: ratio(s.predicted, float32(s.firsts)),
		ActualSeconds:    ratio(s.actual, float32(s.firsts)),
	}
}

// whole sums the window.
func (s *sums) whole() (all step) {
	for i := range s.steps {
		all.add(&s.steps[i])
	}
	return all
}

func (s *sums) decisions() int {
	all := s.whole()
	return all.decisions()
}

func (s *sums) firstToken() firstTokenReport {
	all := s.whole()
	return all.firstToken()
}

// reasonCounts has only those that were given.
func (s *sums) reasonCounts() map[string]int {
	all := s.whole()
	counts := make(map[string]int)
	for i, n := range all.reasons {
		if n > 0 {
			counts[string(reasons[i])] = int(n)
		}
	}
	return counts
}

func (s *sums) cached() cachedReport {
	all := s.whole()
	return cachedReport{
		PromptTokens: int(all.prompt), PredictedTokens: int(all.matched),
		ToldPromptTokens: int(all.told), ToldPredictedTokens: int(all.toldMatched), ToldCachedTokens: int(all.toldCached),
		PredictedRatio: ratio(all.matched, all.prompt), ActualRatio: ratio(all.toldCached, all.told),
	}
}

// ratio is unknown where there is nothing to compare with.
func ratio(part, whole float32) *float64 {
	if whole <= 0 {
		return nil
	}
	return rounded(float64(part) / float64(whole))
}
