package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmapi"
)

// Bounds of a file of faults.
const (
	maxFaultBytes = 16 << 20 // pages of metrics may be among them
	maxFaults     = 1024
)

// scripted is a fault as a file has it.
type scripted struct {
	Kind          vllmapi.FaultKind `json:"kind"`
	Servers       []int             `json:"servers"`
	AfterRequests int               `json:"after_requests"`
	At            duration          `json:"at"`
	For           duration          `json:"for"`
	Count         int               `json:"count"`
	Status        int               `json:"status"`
	Message       string            `json:"message"`
	Header        map[string]string `json:"header"`
	Tokens        int               `json:"tokens"`
	Factor        float64           `json:"factor"`
	Body          *string           `json:"body"`
	Cut           bool              `json:"cut"`
}

type duration time.Duration

func (d *duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return errors.New(`a time is a string such as "1.5s"`)
	}
	v, err := time.ParseDuration(s)
	*d = duration(v)
	return err
}

func (s *scripted) fault() vllmapi.Fault {
	return vllmapi.Fault{
		Kind: s.Kind, AfterRequests: s.AfterRequests, At: time.Duration(s.At), For: time.Duration(s.For), Count: s.Count,
		Status: s.Status, Message: s.Message, Header: s.Header, Tokens: s.Tokens, Factor: s.Factor, Body: s.Body, Cut: s.Cut,
	}
}

func (s *scripted) concerns(server int) bool {
	return len(s.Servers) == 0 || slices.Contains(s.Servers, server)
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
	text, err := io.ReadAll(io.LimitReader(file, maxFaultBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading faults: %w", err)
	}
	if len(text) > maxFaultBytes {
		return nil, fmt.Errorf("reading faults: %s has more than %d bytes", path, maxFaultBytes)
	}
	list, err := parseFaults(text, servers)
	if err != nil {
		return nil, fmt.Errorf("reading faults: %s: %w", path, err)
	}
	return list, nil
}

func parseFaults(text []byte, servers int) ([]scripted, error) {
	var list []scripted
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the list")
	}
	if len(list) > maxFaults {
		return nil, fmt.Errorf("%d faults, want at most %d", len(list), maxFaults)
	}
	for i, s := range list {
		f := s.fault()
		if err := f.Validate(); err != nil {
			return nil, fmt.Errorf("fault %d: %w", i, err)
		}
		for _, server := range s.Servers {
			if server < 0 || server >= servers {
				return nil, fmt.Errorf("fault %d: server %d, want 0 to %d", i, server, servers-1)
			}
		}
	}
	return list, nil
}
