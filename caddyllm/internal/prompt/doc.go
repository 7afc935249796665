// Package prompt finds the prompt in the body of an LLM request and hashes it
// block by block, without decoding the JSON into a tree.
//
// What is hashed is what the engine's chat template sees, as one canonical
// stream of bytes: white space between tokens, the spelling of escapes and the
// order of an object's keys without effect, the parts of the request in the
// order in which templates render them (options of the template, tools, system,
// messages), wherever they stand in the body. Sampling parameters are not in
// it. Text stands in the stream with the shortest escapes that JSON allows,
// which is how nearly all clients send it: it is hashed where it lies, without
// a copy. Between the pieces stand marks, a quote and a letter. Text has quotes
// behind backslashes only, so none can forge the border of a message.
//
// Schemas and arguments stand in it as JSON without white space, which can't be
// taken for marks either: where a value begins is known, and brackets end it.
//
// A survey looks at each byte of the body once and notes where values end, and
// which are canonical as they stand; walks over what is of interest then step
// over the rest, and feed the text in canonical order. Start reading with
// Scanner.Scan (scan.go); survey.go, stops.go, lex.go and walk.go go through raw
// JSON; stops_amd64.s and planes.go look at 64 bytes of it at a time, the one on
// processors with AVX2 and BMI1, the other on all others. fields.go knows the
// names, chat.go, tools.go and batch.go the shapes of prompts, verbatim.go what is
// printed as it came, duplicates.go keys that come twice, media.go, signed.go and
// estimate.go what is not text, billing.go a line that is no part of the key,
// rare.go how a prompt is to be served, feed.go the canonical stream.
//
// Known limits, all of which cost at most a less good choice of upstream:
//   - Values outside the prompt, and schemas and arguments, are checked for
//     balanced brackets and closed strings only; the engine is the judge of the
//     rest.
//   - Of duplicate keys the last counts, as in Python; of several names for one
//     thing the last that says something. Behind the first 16,384 keys of one
//     tool's schema or one call's arguments, and deeper than 32 brackets in it,
//     all of them count.
//   - Numbers in tools are told apart by spelling: 1.0 is not 1.
//   - Text parts of a message are joined by a line feed, as vLLM does it for
//     templates that want strings: a text cut into two parts equals the whole
//     only if a line feed stood where it was cut.
//   - Images of SGLang's and vLLM's generate endpoints count from the front of
//     the prompt, wherever their placeholders stand in it.
//   - The head of a long body is read as if nothing else followed: members that
//     stand behind it, such as a role behind its content or tools behind the
//     messages, are not in its key.
//   - Raw control characters and invalid UTF-8 in strings are taken as they
//     are.
//   - tool_choice and response_format aren't in the key. Engines hand them to the
//     template or leave tools out by them (vLLM only where it is told to, SGLang
//     always), but most show nothing of them, and clients change them from turn to
//     turn of one conversation: a key that tells such turns apart sends them away
//     from a cache that has them, and they are computed and kept twice. A key that
//     doesn't only mistakes how much of such a turn is cached, where it would have
//     been computed anew anywhere.
//   - Of how a model shall think its budget of tokens isn't in the key: engines cut
//     thoughts off by it, and templates seldom tell it.
//   - How pictures and videos are cut up is in it by the names that vLLM has for
//     that, mm_processor_kwargs and media_io_kwargs, only.
//   - What stands behind a prompt, such as a suffix, is not in it.
//   - UTF-16 bodies, which Python accepts, count as broken.
package prompt
