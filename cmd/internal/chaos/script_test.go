package main

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// In any script some servers are well at any time, no server has two troubles,
// and a seed has one script.
func TestScriptsLeaveServersThatAreWell(t *testing.T) {
	for seed := range uint64(50) {
		script := write(rand.New(rand.NewPCG(seed, 0)), 4*time.Minute)
		if !reflect.DeepEqual(script, write(rand.New(rand.NewPCG(seed, 0)), 4*time.Minute)) {
			t.Fatalf("seed %d has two scripts", seed)
		}
		seen := make(map[kind]bool)
		for i, a := range script {
			seen[a.kind] = true
			if a.at+a.lasts > 4*time.Minute {
				t.Errorf("seed %d: %+v is not over in time", seed, a)
			}
			at := make(map[int]bool)
			for _, b := range script[:i+1] {
				if b.at+b.lasts+settle > a.at {
					if at[b.server] {
						t.Errorf("seed %d: server %d has two troubles at %v", seed, b.server, a.at)
					}
					at[b.server] = true
				}
			}
			if len(at) > sick {
				t.Errorf("seed %d: %d servers are in trouble at %v", seed, len(at), a.at)
			}
		}
		if len(seen) != len(kinds) {
			t.Errorf("seed %d has %d kinds of trouble, want all %d", seed, len(seen), len(kinds))
		}
	}
}
