package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmapi"
)

// script is the faults of all servers, which may change while they run. Its
// methods may be called concurrently.
type script struct {
	servers []*vllmapi.Faults

	mu     sync.Mutex
	armed  []armed
	lastID int
}

// armed is a fault of the script.
type armed struct {
	id int
	scripted
	remove []func() // by server concerned
}

// add arms all faults of a list, or none, and returns their ids.
func (s *script) add(list []scripted) ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.armed)+len(list) > maxFaults {
		return nil, fmt.Errorf("adding faults: there would be %d, want at most %d; remove some", len(s.armed)+len(list), maxFaults)
	}
	added := make([]armed, 0, len(list))
	ids := make([]int, 0, len(list))
	for i, f := range list {
		a := armed{id: s.lastID + 1 + i, scripted: f}
		for server, faults := range s.servers {
			if !f.concerns(server) {
				continue
			}
			remove, err := faults.Add(f.Fault)
			if err != nil {
				for _, done := range append(added, a) {
					done.end()
				}
				return nil, fmt.Errorf("line %d: %w", f.line, err)
			}
			a.remove = append(a.remove, remove)
		}
		added, ids = append(added, a), append(ids, a.id)
	}
	s.lastID += len(list)
	s.armed = append(s.armed, added...)
	return ids, nil
}

func (a armed) end() {
	for _, remove := range a.remove {
		remove()
	}
}

// remove ends one fault, and tells whether there was one.
func (s *script) remove(id int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.armed, func(a armed) bool { return a.id == id })
	if i < 0 {
		return false
	}
	s.armed[i].end()
	s.armed = slices.Delete(s.armed, i, i+1)
	return true
}

// clear ends all faults.
func (s *script) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.armed {
		a.end()
	}
	s.armed = nil
}

// shown is a fault as the admin interface tells of it, in the words of a list.
type shown struct {
	ID            int               `json:"id"`
	Kind          vllmapi.FaultKind `json:"kind"`
	Servers       []int             `json:"servers,omitempty"`
	AfterRequests int               `json:"after_requests,omitempty"`
	At            string            `json:"at,omitempty"`
	For           string            `json:"for,omitempty"`
	Count         int               `json:"count,omitempty"`
	Share         float64           `json:"share,omitempty"`
	Status        int               `json:"status,omitempty"`
	Message       string            `json:"message,omitempty"`
	Header        map[string]string `json:"header,omitempty"`
	Delay         string            `json:"delay,omitempty"`
	Tokens        int               `json:"tokens,omitempty"`
	Factor        float64           `json:"factor,omitempty"`
	Level         int               `json:"level,omitempty"`
	Body          *string           `json:"body,omitempty"`
	Cut           bool              `json:"cut,omitempty"`
}

func (s *script) show() []shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]shown, 0, len(s.armed))
	for _, a := range s.armed {
		list = append(list, shown{
			ID: a.id, Kind: a.Kind, Servers: a.servers, AfterRequests: a.AfterRequests, At: span(a.At), For: span(a.For),
			Count: a.Count, Share: a.Share, Status: a.Status, Message: a.Message, Header: a.Header, Delay: span(a.Delay),
			Tokens: a.Tokens, Factor: a.Factor, Level: a.Level, Body: a.Body, Cut: a.Cut,
		})
	}
	return list
}

// span is a time as a list has it; none is left out.
func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
