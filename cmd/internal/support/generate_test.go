package support

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/trace"
)

var update = flag.Bool("update", false, "rewrite the conversation file in testdata")

const (
	file    = "../../../testdata/conversations/support.jsonl"
	seed    = 1
	perDesk = 8
)

func TestTheCommittedFileIsWhatGenerateMakes(t *testing.T) {
	var b bytes.Buffer
	if err := Generate(&b, seed, perDesk); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, b.Bytes()) {
		t.Errorf("Generate(seed %d, %d per desk) makes %d bytes that differ from the file's %d; go test -update rewrites it", seed, perDesk, b.Len(), len(committed))
	}
}

func TestConversationsAreLongAndShareOnlyTheirDesksPrompt(t *testing.T) {
	read, err := trace.ReadFile(file, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(read.Conversations), perDesk*len(desks); got != want {
		t.Errorf("%s holds %d conversations, want %d", file, got, want)
	}
	prompts := make(map[string]int)
	second := make(map[string]bool)
	for _, c := range read.Conversations {
		if n := len(c.Turns); n < turnsMin || n > turnsMax {
			t.Errorf("%s has %d turns, want %d to %d", c.ID, n, turnsMin, turnsMax)
		}
		first := c.Turns[0].Messages
		if len(first) != 2 {
			t.Fatalf("%s begins with %d messages, want a system prompt and a question", c.ID, len(first))
		}
		prompts[string(first[0])]++
		if second[string(first[1])] {
			t.Errorf("%s asks what another conversation asked, word by word", c.ID)
		}
		second[string(first[1])] = true
		for i, turn := range c.Turns {
			if i > 0 && (turn.Gap < gapMinS*time.Second || turn.Gap > gapMaxS*time.Second) {
				t.Errorf("turn %d of %s comes %v after the one before, want %d to %d s", i, c.ID, turn.Gap, gapMinS, gapMaxS)
			}
			if turn.Assistant == nil {
				t.Errorf("%s has a turn without a recorded reply", c.ID)
			}
		}
	}
	if len(prompts) != len(desks) {
		t.Errorf("%s has %d system prompts, want %d", file, len(prompts), len(desks))
	}
}

func TestEveryPlaceInTheTextsIsFilled(t *testing.T) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, slot := range []string{"{name}", "{ref}", "{day}", "{place}", "{n}"} {
		if bytes.Contains(text, []byte(slot)) {
			t.Errorf("%s still holds the slot %s", file, slot)
		}
	}
}
