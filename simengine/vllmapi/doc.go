// Package vllmapi is the HTTP face of a simulated vLLM server: the OpenAI API
// as vLLM answers it, in front of one engine that package live drives.
//
// # What it serves
//
//	POST /v1/chat/completions, /v1/completions    streamed or not
//	GET  /v1/models, /health, /ping, /version, /load, /metrics
//	POST /tokenize, /detokenize, /ping
//
// Other paths get 404 and other methods 405, in the words of vLLM's web
// framework. Errors of the API have vLLM's shape and status; a prompt that is
// too long is refused with 400 before a stream starts. A streamed answer's
// header goes out at once, as from vLLM: the time to the first token is that
// of the first event, not that of the header.
//
// # Tokens and text
//
// A token is 4 bytes of text; each text of a request is cut from its own
// beginning. Specials mark the begin of the prompt, headers, ends of turns and
// tool calls; a picture or another file is 256 tokens made from a hash of its
// address or bytes. Replies are made-up words of one token each, which follow
// from the prompt and the seed alone: equal requests get equal answers, from
// any server of the same seed. A reply that isn't bounded otherwise ends by
// itself after 16 to 256 tokens, each length as likely as another. Sent back
// as the assistant's message, it is found in the prefix cache.
//
// Contents may be strings or lists of parts, with the same tokens; several
// texts in one list are joined by a line feed, as vLLM does, so a text in two
// parts is not the text in one. Reasoning in messages is left out of the prompt,
// as common templates do.
//
// Names in Config.ServedModels are adapters: they share the engine, but no
// cached block.
//
// # What is left out
//
// Log probabilities (null), structured output, generated tool calls, beam
// search, prompt embeddings, and all other routes of vLLM. Where vLLM answers a
// cache miss with null, cached_tokens is 0 here: "unknown" and "none" differ.
// vLLM's usage of several prompts tells the cached tokens of the last one; here
// they are summed up, as the prompt tokens are.
//
// # Reading guide
//
// server.go has the configuration and the routes, generate.go the way of a
// request; request.go decodes it (form.go is JSON as Python reads it),
// template.go and token.go make tokens of it, reply.go the answer, which
// stream.go and whole.go send. faults.go breaks things on purpose: requests
// by strike.go, the server as a whole by outage.go and door.go.
package vllmapi
