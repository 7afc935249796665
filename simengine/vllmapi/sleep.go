package vllmapi

import (
	"net/http"
	"strconv"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
	"github.com/caddyllm/caddy-llm-prefix/simengine/live"
)

// engines are the driver's engines, one for each data-parallel rank.
func (s *Server) engines(yield func(*live.Driver) bool) {
	for i := 0; ; i++ {
		d := s.c.Driver.Rank(i)
		if d == nil || !yield(d) {
			return
		}
	}
}

// sleep stops the engines. Requests that run are aborted, waited for or kept,
// as mode says; those that come wait for wake_up. From level 1 on the prefix
// cache is lost.
func (s *Server) sleep(x *exchange) {
	query := x.r.URL.Query()
	level := 1
	if v := query.Get("level"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			invalid{kind: "int_parsing", loc: "query.level", msg: "Input should be a valid integer, unable to parse string as an integer", input: pyString(v)}.error().write(x)
			return
		}
		level = n
	}
	switch {
	case level < 0:
		invalid{kind: "greater_than_equal", loc: "query.level", msg: "Input should be greater than or equal to 0", input: strconv.Itoa(level)}.error().write(x)
		return
	case level > simengine.LevelMax:
		invalid{kind: "less_than_equal", loc: "query.level", msg: "Input should be less than or equal to 2", input: strconv.Itoa(level)}.error().write(x)
		return
	}
	modes := map[string]simengine.PauseMode{"": simengine.PauseAbort, "abort": simengine.PauseAbort, "wait": simengine.PauseWait, "keep": simengine.PauseKeep}
	mode, ok := modes[query.Get("mode")]
	if !ok {
		invalid{kind: "literal_error", loc: "query.mode", msg: "Input should be 'abort', 'wait' or 'keep'", input: pyString(query.Get("mode"))}.error().write(x)
		return
	}
	for d := range s.engines {
		_ = d.Sleep(level, mode) // level and mode are known
	}
	if s.c.Exporter != nil {
		s.c.Exporter.SetSleep(level)
	}
	writeJSON(x, http.StatusOK, struct {
		Status string `json:"status"`
		Level  int    `json:"level"`
	}{"sleeping", level})
}

func (s *Server) wakeUp(x *exchange) {
	for d := range s.engines {
		d.Wake()
	}
	if s.c.Exporter != nil {
		s.c.Exporter.SetSleep(0)
	}
	writeJSON(x, http.StatusOK, struct {
		Status string   `json:"status"`
		Tags   []string `json:"tags"`
	}{"awake", x.r.URL.Query()["tags"]})
}

func (s *Server) isSleeping(x *exchange) {
	_, asleep := s.c.Driver.Rank(0).Asleep()
	writeJSON(x, http.StatusOK, map[string]bool{"is_sleeping": asleep})
}

// resetPrefixCache does nothing while a request holds blocks.
func (s *Server) resetPrefixCache(x *exchange) {
	writeJSON(x, http.StatusOK, map[string]bool{"success": s.c.Driver.ResetPrefixCache()})
}
