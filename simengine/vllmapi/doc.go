// Package vllmapi is the HTTP face of a simulated vLLM server: the OpenAI API
// as vLLM answers it, in front of one engine that package live drives.
//
// # What it serves
//
//	POST /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages    streamed or not
//	POST /v1/embeddings, /v1/messages/count_tokens, /tokenize, /detokenize
//	GET  /v1/models, /v1/responses/{id}, /health, /ping, /version, /load, /metrics
//
// and, where Config says so, sleep and wake, the reset of the prefix cache, and
// the loading of adapters. Other paths get 404 and other methods 405, in the
// words of vLLM's web framework. Answers and errors have the form of those in
// testdata/vllm; a prompt that is too long is refused with 400 before a stream
// starts. A streamed answer's header goes out at once, as from vLLM: the time to
// the first token is that of the first event, not that of the header.
//
// # Tokens and text
//
// A token is 4 bytes of text; each text of a request is cut from its own
// beginning. Ids of tokens fit 32 bits, but for those of text that isn't ASCII.
// Specials mark the begin of the prompt, headers, ends of turns and
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
// Thoughts, calls of tools with arguments that fit their schema, replies in the
// form that response_format or structured_outputs ask for, embeddings and log
// probabilities follow from the seed, too.
//
// # What is left out
//
// Replies by a grammar or a structural tag, which are words, beam search, prompt
// embeddings, background responses, and all other routes of vLLM. Stop strings are not looked for in calls of tools.
// vLLM's usage of several prompts tells the cached tokens of the last one; here
// they are summed up, as the prompt tokens are. A prompt whose log
// probabilities are asked for is not found in the cache later.
//
// # Reading guide
//
// server.go has the configuration and routes.go the routes; generate.go is the
// way of a request. The *request.go files decode it (form.go is JSON as Python
// reads it), template.go and token.go make tokens of it, reply.go and part.go
// the answer. stream.go sends its events, which event.go makes and the render*.go
// files tell, one for each API. faults.go breaks things on purpose.
package vllmapi
