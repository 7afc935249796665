package vllmapi

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// adapter is a LoRA adapter by its name. It shares the engine, but no cached
// block.
type adapter struct{ name, path string }

// adaptersMax bounds the adapters of a server.
const adaptersMax = 4096

// adapters are those that are loaded, in the order in which they came.
type adapters struct {
	mu   sync.RWMutex
	list []adapter
}

// reset leaves those that a server begins with.
func (a *adapters) reset(names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = nil
	for _, name := range names {
		a.list = append(a.list, adapter{name, name})
	}
}

func (a *adapters) has(name string) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.ContainsFunc(a.list, func(b adapter) bool { return b.name == name })
}

// id is the adapter's in KV events, 0 if there is no such adapter.
func (a *adapters) id(name string) int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return 1 + slices.IndexFunc(a.list, func(b adapter) bool { return b.name == name })
}

func (a *adapters) all() []adapter {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.Clone(a.list)
}

// resolve finds the model that a request means.
func (s *Server) resolve(name string) (string, *apiError) {
	if name == "" || name == s.c.Model {
		return s.c.Model, nil
	}
	if !s.adapters.has(name) {
		return "", s.unknownModel(name)
	}
	return name, nil
}

// adapterOf is a model's name if it is an adapter's.
func (s *Server) adapterOf(model string) string {
	if model == s.c.Model {
		return ""
	}
	return model
}

type modelCard struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	OwnedBy     string       `json:"owned_by"`
	Root        string       `json:"root"`
	Parent      *string      `json:"parent"`
	MaxModelLen *int         `json:"max_model_len"`
	Permission  []permission `json:"permission"`
}

type permission struct {
	ID                 string  `json:"id"`
	Object             string  `json:"object"`
	Created            int64   `json:"created"`
	AllowCreateEngine  bool    `json:"allow_create_engine"`
	AllowSampling      bool    `json:"allow_sampling"`
	AllowLogprobs      bool    `json:"allow_logprobs"`
	AllowSearchIndices bool    `json:"allow_search_indices"`
	AllowView          bool    `json:"allow_view"`
	AllowFineTuning    bool    `json:"allow_fine_tuning"`
	Organization       string  `json:"organization"`
	Group              *string `json:"group"`
	IsBlocking         bool    `json:"is_blocking"`
}

func (s *Server) card(name, root string) modelCard {
	return modelCard{
		ID: name, Object: "model", Created: s.created, OwnedBy: "vllm", Root: root,
		Permission: []permission{{
			ID: fmt.Sprintf("modelperm-%016x", mix(s.idSeed^s.ids.Add(1))), Object: "model_permission", Created: s.created,
			AllowSampling: true, AllowLogprobs: true, AllowView: true, Organization: "*",
		}},
	}
}

// models lists the model and its adapters.
func (s *Server) models(x *exchange) {
	base := s.card(s.c.Model, s.c.Model)
	base.MaxModelLen = &s.c.MaxModelLen
	cards := []modelCard{base}
	for _, a := range s.adapters.all() {
		card := s.card(a.name, a.path)
		card.Parent = &s.c.Model
		cards = append(cards, card)
	}
	writeJSON(x, http.StatusOK, struct {
		Object string      `json:"object"`
		Data   []modelCard `json:"data"`
	}{"list", cards})
}

func loraError(status int, kind, format string, args ...any) *apiError {
	return &apiError{status, kind, fmt.Sprintf(format, args...), ""}
}

func (s *Server) loadAdapter(x *exchange) {
	f := s.body(x)
	if f == nil {
		return
	}
	name, path := f.need("lora_name"), f.need("lora_path")
	inPlace := f.boolean("load_inplace", false)
	if !f.failed() {
		f.err = s.adapters.load(adapter{name, path}, inPlace, s.c.Model)
	}
	if err := f.problem(nil); err != nil {
		err.write(x)
		return
	}
	writeText(x, fmt.Sprintf("Success: LoRA adapter '%s' added successfully.", name))
}

func (a *adapters) load(b adapter, inPlace bool, model string) *apiError {
	if b.name == "" || b.path == "" {
		return loraError(http.StatusBadRequest, "InvalidUserInput", "Both 'lora_name' and 'lora_path' must be provided.")
	}
	if b.name == model {
		return loraError(http.StatusBadRequest, "InvalidUserInput", "The lora adapter '%s' conflicts with a served base model.", b.name)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.list, func(c adapter) bool { return c.name == b.name })
	switch {
	case i >= 0 && !inPlace:
		return loraError(http.StatusBadRequest, "InvalidUserInput", "The lora adapter '%s' has already been loaded. If you want to load the adapter in place, set 'load_inplace' to True.", b.name)
	case i >= 0:
		a.list[i] = b
	case len(a.list) == adaptersMax:
		return loraError(http.StatusBadRequest, "InvalidUserInput", "There are %d adapters, and no more may be loaded.", adaptersMax)
	default:
		a.list = append(a.list, b)
	}
	return nil
}

func (s *Server) unloadAdapter(x *exchange) {
	f := s.body(x)
	if f == nil {
		return
	}
	name := f.need("lora_name")
	if !f.failed() {
		f.err = s.adapters.unload(name)
	}
	if err := f.problem(nil); err != nil {
		err.write(x)
		return
	}
	writeText(x, fmt.Sprintf("Success: LoRA adapter '%s' removed successfully.", name))
}

func (a *adapters) unload(name string) *apiError {
	if name == "" {
		return loraError(http.StatusBadRequest, "InvalidUserInput", "'lora_name' needs to be provided to unload a LoRA adapter.")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(a.list)
	a.list = slices.DeleteFunc(a.list, func(b adapter) bool { return b.name == name })
	if len(a.list) == n {
		return loraError(http.StatusNotFound, "NotFoundError", "The lora adapter '%s' cannot be found.", name)
	}
	return nil
}

// writeText answers with a text, as Starlette's plain Response.
func writeText(x *exchange, text string) {
	x.Header()["Content-Length"] = []string{fmt.Sprint(len(text))}
	x.Header()["Content-Type"] = nil // none, not what net/http would guess
	x.WriteHeader(http.StatusOK)
	_, _ = x.Write([]byte(text)) // a client that left needs no answer
}
