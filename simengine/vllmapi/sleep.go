package vllmapi

import (
	"net/http"
	"strconv"

	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// sleep stops the engines. Requests that run are aborted, waited for or kept,
// as mode says; those that come wait for wake_up. From level 1 on the prefix
// cache is lost.
func (s *Server) sleep(x *exchange) {
	query := x.r.URL.Query()
	level := 1
	if v := query.Get("level"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			invalidQuery("int_parsing", "level", "Input should be a valid integer, unable to parse string as an integer", v).write(x)
			return
		}
		level = n
	}
	switch {
	case level < 0:
		invalidQuery("greater_than_equal", "level", "Input should be greater than or equal to 0", strconv.Itoa(level)).write(x)
		return
	case level > simengine.LevelMax:
		invalidQuery("less_than_equal", "level", "Input should be less than or equal to 2", strconv.Itoa(level)).write(x)
		return
	}
	modes := map[string]simengine.PauseMode{"": simengine.PauseAbort, "abort": simengine.PauseAbort, "wait": simengine.PauseWait, "keep": simengine.PauseKeep}
	mode, ok := modes[query.Get("mode")]
	if !ok {
		invalidQuery("literal_error", "mode", "Input should be 'abort', 'wait' or 'keep'", query.Get("mode")).write(x)
		return
	}
	_ = s.c.Driver.Sleep(level, mode) // level and mode are known
	if s.c.Exporter != nil {
		s.c.Exporter.SetSleep(level)
	}
	writeJSON(x, http.StatusOK, struct {
		Status string `json:"status"`
		Level  int    `json:"level"`
	}{"sleeping", level})
}

func (s *Server) wakeUp(x *exchange) {
	s.c.Driver.Wake()
	if s.c.Exporter != nil {
		s.c.Exporter.SetSleep(0)
	}
	writeJSON(x, http.StatusOK, struct {
		Status string   `json:"status"`
		Tags   []string `json:"tags"`
	}{"awake", x.r.URL.Query()["tags"]})
}

func (s *Server) isSleeping(x *exchange) {
	_, asleep := s.c.Driver.Asleep()
	writeJSON(x, http.StatusOK, map[string]bool{"is_sleeping": asleep})
}

// resetPrefixCache does nothing while a request holds blocks.
func (s *Server) resetPrefixCache(x *exchange) {
	writeJSON(x, http.StatusOK, map[string]bool{"success": s.c.Driver.ResetPrefixCache()})
}
