package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestPercentOf(t *testing.T) {
	for _, c := range []struct {
		alive uint64
		want  int
	}{
		{0, percentMax}, {1 << 20, percentMax}, {64 << 20, 100}, {128 << 20, 50}, {256 << 20, 25}, {8 << 30, percentMin},
	} {
		if got := percentOf(c.alive); got != c.want {
			t.Errorf("percentOf(%d MiB) = %d, want %d", c.alive>>20, got, c.want)
		}
	}
}

func TestThePaceFollowsWhatIsAlive(t *testing.T) {
	defer debug.SetGCPercent(100)
	Pace()
	alive := make([]byte, 256<<20)
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		runtime.GC()
		got := debug.SetGCPercent(100)
		debug.SetGCPercent(got)
		if got <= 30 {
			break
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the pace is %d %% with 256 MiB alive, want at most 30", got)
		}
	}
	runtime.KeepAlive(alive)
}
