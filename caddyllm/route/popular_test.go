package route

import "testing"

// Where all engines are behind, as when they begin with empty caches, each of
// sixteen prompts has about a sixteenth of those that wait. One upstream carries
// that, and copies would put all further behind; of the prompts with a little more
// than a sixteenth they were taken to cost a tenth of their work. A crowd is more.
func TestWhereAllWaitNoPromptIsACrowd(t *testing.T) {
	const n = 16
	var p popularity
	chain := func(i int) []uint64 { return prompt("popular", 1, i, 20).Chain[1:] }
	for range 8 {
		for i := range n {
			p.enter(chain(i), n)
		}
	}
	demand := func(i int) float64 { return p.demand(*p.place(chain(i)[0]), n) }
	p.enter(chain(0), n)
	p.enter(chain(0), n)
	for i := range n {
		if got := demand(i); got > 0.5 {
			t.Errorf("prompt %d of %d, all asked about alike, wants %.2f copies", i, n, got)
		}
	}
	for range 64 {
		p.enter(chain(n), n)
	}
	if got := demand(n); got < 3 {
		t.Errorf("a third of those that wait ask for the same, and it wants %.2f copies", got)
	}
}
