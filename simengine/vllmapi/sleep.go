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
	mode, ok := pauseMode(x)
	if !ok {
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

// pauseMode reads what becomes of requests that run. If it can't, it has answered.
func pauseMode(x *exchange) (simengine.PauseMode, bool) {
	switch v := x.r.URL.Query().Get("mode"); v {
	case "", "abort":
		return simengine.PauseAbort, true
	case "wait":
		return simengine.PauseWait, true
	case "keep":
		return simengine.PauseKeep, true
	default:
		invalidQuery("literal_error", "mode", "Input should be 'abort', 'wait' or 'keep'", v).write(x)
		return 0, false
	}
}

// queryFlag reads a parameter that is yes or no. If it can't, it has answered.
func queryFlag(x *exchange, name string, absent bool) (flag, ok bool) {
	v := x.r.URL.Query().Get(name)
	if v == "" {
		return absent, true
	}
	if flag, ok = booleanWord(v); !ok {
		invalidQuery("bool_parsing", name, "Input should be a valid boolean, unable to interpret input", v).write(x)
	}
	return flag, ok
}

// pause stops the engines as sleep does, and moves no weights: the metrics say
// awake. The cache is lost unless requests are kept or the client says so.
func (s *Server) pause(x *exchange) {
	mode, ok := pauseMode(x)
	if !ok {
		return
	}
	clear, ok := queryFlag(x, "clear_cache", true)
	if !ok {
		return
	}
	level := 0
	if clear && mode != simengine.PauseKeep {
		level = 1
	}
	_ = s.c.Driver.Sleep(level, mode) // level and mode are known
	writeJSON(x, http.StatusOK, map[string]string{"status": "paused"})
}

func (s *Server) resume(x *exchange) {
	s.c.Driver.Wake()
	writeJSON(x, http.StatusOK, map[string]string{"status": "resumed"})
}

func (s *Server) isPaused(x *exchange) {
	_, asleep := s.c.Driver.Asleep()
	writeJSON(x, http.StatusOK, map[string]bool{"is_paused": asleep})
}

// resetNothing is the reset of a cache that there is none of.
func (s *Server) resetNothing(x *exchange) { x.WriteHeader(http.StatusOK) }

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
	for _, name := range []string{"reset_running_requests", "reset_external"} {
		if _, ok := queryFlag(x, name, false); !ok {
			return
		}
	}
	writeJSON(x, http.StatusOK, map[string]bool{"success": s.c.Driver.ResetPrefixCache()})
}
