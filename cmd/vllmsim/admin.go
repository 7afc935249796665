package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// admin serves the faults on a port of its own, so that no one reaches it
// through a proxy in front of the servers:
//
//	GET    /faults       lists them
//	POST   /faults       adds those of a list as --faults takes it
//	DELETE /faults       removes all
//	DELETE /faults/{id}  removes one
func (s *script) admin() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.show()) })
	mux.HandleFunc("POST /faults", func(w http.ResponseWriter, r *http.Request) {
		list, err := parseFaults(r.Body, len(s.servers))
		var ids []int
		if err == nil {
			ids, err = s.add(list)
		}
		if err != nil {
			answer(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
		answer(w, http.StatusOK, map[string][]int{"ids": ids})
	})
	mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, _ *http.Request) {
		s.clear()
		answer(w, http.StatusOK, s.show())
	})
	mux.HandleFunc("DELETE /faults/{id}", func(w http.ResponseWriter, r *http.Request) {
		if id, err := strconv.Atoi(r.PathValue("id")); err != nil || !s.remove(id) {
			answer(w, http.StatusNotFound, map[string]string{"error": "no fault " + r.PathValue("id")})
			return
		}
		answer(w, http.StatusOK, s.show())
	})
	return &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ReadTimeout: time.Minute}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that left needs no answer
}
