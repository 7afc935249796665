package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestTheLoadIsTheSameEachTimeAndSharesOnlySystemPrompts(t *testing.T) {
	h := &home{source: "../.."}
	load, err := h.workload()
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.workload()
	if err != nil || !reflect.DeepEqual(load, again) {
		t.Fatalf("another load the second time: %v", err)
	}
	users, systems := make(map[string]bool), make(map[string]int)
	for i := range load.Conversations {
		c := &load.Conversations[i]
		for j := range c.Turns {
			if gap := c.Turns[j].Gap; j == 0 && gap != 0 || j > 0 && (gap < pauseLeast || gap >= pauseMost) {
				t.Errorf("%s, turn %d: a pause of %v", c.ID, j+1, gap)
			}
			for _, raw := range c.Turns[j].Messages {
				var m message
				if err := json.Unmarshal(raw, &m); err != nil {
					t.Fatal(err)
				}
				if m.Role == "system" {
					systems[m.Content]++
					continue
				}
				begin := m.Content[:40]
				if users[begin] || len(strings.Fields(m.Content)) < passageWords {
					t.Errorf("%s, turn %d has no passage of its own", c.ID, j+1)
				}
				users[begin] = true
			}
		}
	}
	if n := len(load.Conversations); len(systems) >= n/4 || n < 16 {
		t.Errorf("%d conversations of %d companies", n, len(systems))
	}
	// None begins after all others have ended.
	if d := length(load); d < startEvery*31 || d > 3*startEvery*32 {
		t.Errorf("it takes %v", d)
	}
}
