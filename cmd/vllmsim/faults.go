package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmapi"
)

// Bounds of a list of faults.
const (
	maxFaultBytes = 4 << 20 // pages of metrics may be among them
	maxFaults     = 1024
)

// scripted is a fault as a list has it.
type scripted struct {
	vllmapi.Fault
	servers []int // empty is all
	line    int
}

func (s *scripted) concerns(server int) bool {
	return len(s.servers) == 0 || slices.Contains(s.servers, server)
}

// words are the members of a fault, as the documentation of the command has
// them.
var words = map[string]func(*scripted, *yaml.Node) error{
	"kind":           func(s *scripted, n *yaml.Node) error { return n.Decode(&s.Kind) },
	"servers":        func(s *scripted, n *yaml.Node) error { return n.Decode(&s.servers) },
	"after_requests": func(s *scripted, n *yaml.Node) error { return n.Decode(&s.AfterRequests) },
	"at":             func(s *scripted, n *yaml.Node) error { return decodeTime(n, &s.At) },
	"for":            func(s *scripted, n *yaml.Node) error { return decodeTime(n, &s.For) },
	"count":          func(s *scripted, n *yaml.Node) error { return n.Decode(&s.Count) },
	"share":          func(s *scripted, n *yaml.Node) error { return n.Decode(&s.Share) },
	"status":         func(s *scripted, n *yaml.Node) error { return n.Decode(&s.Status) },
	"message":        func(s *scripted, n *yaml.Node) error { return n.Decode(&s.Message) },
	"header":         func(s *scripted, n *yaml.Node) error { return n.Decode(&s.Header) },
	"delay":          func(s *scripted, n *yaml.Node) error { return decodeTime(n, &s.Delay) },
	"tokens":         func(s *scripted, n *yaml.Node) error { return n.Decode(&s.Tokens) },
	"factor":         func(s *scripted, n *yaml.Node) error { return n.Decode(&s.Factor) },
	"level":          func(s *scripted, n *yaml.Node) error { return n.Decode(&s.Level) },
	"body":           func(s *scripted, n *yaml.Node) error { return n.Decode(&s.Body) },
	"cut":            func(s *scripted, n *yaml.Node) error { return n.Decode(&s.Cut) },
}

// decodeTime takes no bare numbers: they have no unit.
func decodeTime(n *yaml.Node, to *time.Duration) error {
	var text string
	if n.Tag != "!!str" || n.Decode(&text) != nil {
		return errors.New("a time is a number and a unit, such as 1.5s")
	}
	var err error
	*to, err = time.ParseDuration(text)
	return err
}

// readFaults reads a file of faults for so many servers.
func readFaults(path string, servers int) ([]scripted, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading faults: %w", err)
	}
	defer file.Close()
	list, err := parseFaults(file, servers)
	if err != nil {
		return nil, fmt.Errorf("reading faults: %s: %w", path, err)
	}
	return list, nil
}

// parseFaults reads a list in YAML, of which JSON is a part. Errors tell the
// line.
func parseFaults(r io.Reader, servers int) ([]scripted, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFaultBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFaultBytes {
		return nil, fmt.Errorf("more than %d bytes", maxFaultBytes)
	}
	var document yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.SequenceNode {
		return nil, errors.New("line 1: want a list of faults")
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the list")
	}
	items := document.Content[0].Content
	if len(items) > maxFaults {
		return nil, fmt.Errorf("%d faults, want at most %d", len(items), maxFaults)
	}
	list := make([]scripted, 0, len(items))
	for _, item := range items {
		s, err := parseFault(item)
		if err != nil {
			return nil, err
		}
		for _, server := range s.servers {
			if server < 0 || server >= servers {
				return nil, fmt.Errorf("line %d: server %d, want 0 to %d", s.line, server, servers-1)
			}
		}
		list = append(list, s)
	}
	return list, nil
}

func parseFault(item *yaml.Node) (scripted, error) {
	s := scripted{line: item.Line}
	if item.Kind != yaml.MappingNode {
		return s, fmt.Errorf("line %d: want a fault, such as {kind: hang, count: 3}", item.Line)
	}
	seen := make(map[string]bool, len(item.Content)/2)
	for i := 0; i+1 < len(item.Content); i += 2 {
		key, value := item.Content[i], item.Content[i+1]
		set := words[key.Value]
		switch {
		case set == nil:
			return s, fmt.Errorf("line %d: unknown word %q", key.Line, key.Value)
		case seen[key.Value]:
			return s, fmt.Errorf("line %d: %s is there twice", key.Line, key.Value)
		case value.Tag == "!!null":
			return s, fmt.Errorf("line %d: %s has no value", value.Line, key.Value)
		case value.Kind == yaml.AliasNode:
			return s, fmt.Errorf("line %d: %s is an alias, want a value", value.Line, key.Value)
		}
		seen[key.Value] = true
		if err := set(&s, value); err != nil {
			return s, fmt.Errorf("line %d: %s: %w", value.Line, key.Value, plain(err))
		}
	}
	if err := s.Validate(); err != nil {
		return s, fmt.Errorf("line %d: %w", item.Line, err)
	}
	return s, nil
}

// plain takes the library's own mention of lines off an error.
func plain(err error) error {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) || len(wrong.Errors) == 0 {
		return err
	}
	_, text, found := bytes.Cut([]byte(wrong.Errors[0]), []byte(": "))
	if !found {
		return err
	}
	return errors.New(string(text))
}
