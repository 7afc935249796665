package kvevents

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// message is a line of a recording.
type message struct {
	Topic   string
	Seq     uint64
	Payload [3]json.RawMessage
	Frames  []string
}

// told is an event of a recording, of either form.
type told struct {
	Type        string
	Hashes      []uint64 `json:"block_hashes"`
	Parent      *uint64  `json:"parent_block_hash"`
	Tokens      []uint64 `json:"token_ids"`
	BlockSize   int      `json:"block_size"`
	ExtraKeys   [][]any  `json:"extra_keys"`
	AdapterID   *int     `json:"lora_id"`
	AdapterName *string  `json:"lora_name"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *told) UnmarshalJSON(b []byte) error {
	type plain told
	if b[0] == '{' {
		return json.Unmarshal(b, (*plain)(e))
	}
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	var medium any
	for i, to := range []any{&e.Type, &e.Hashes, &e.Parent, &e.Tokens, &e.BlockSize, &e.AdapterID, &medium, &e.AdapterName, &e.ExtraKeys} {
		if i == 2 && e.Type != "BlockStored" {
			break
		}
		if i < len(list) {
			if err := json.Unmarshal(list[i], to); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordings are the files of messages of versions of vLLM.
func recordings(t *testing.T) map[string][]message {
	t.Helper()
	files, err := filepath.Glob("../../testdata/vllm/*/events/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no events of vLLM are recorded in testdata/vllm")
	}
	list := map[string][]message{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var m message
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			list[file] = append(list[file], m)
		}
	}
	return list
}

// formatOf is the format of a file's version.
func formatOf(file string) Format {
	switch version := filepath.Base(filepath.Dir(filepath.Dir(file))); {
	case strings.HasPrefix(version, "0.9."):
		return V09
	case strings.HasPrefix(version, "0.10."), strings.HasPrefix(version, "0.11."):
		return V011
	case strings.HasPrefix(version, "0.19."):
		return V019
	}
	return V024
}

func (m message) events(t *testing.T) []told {
	t.Helper()
	var list []told
	if err := json.Unmarshal(m.Payload[1], &list); err != nil {
		t.Fatal(err)
	}
	return list
}
