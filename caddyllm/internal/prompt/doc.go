// Package prompt finds the prompt in the body of an LLM request and hashes it
// block by block, without decoding the JSON into a tree.
//
// What is hashed is what the engine's chat template sees, as one canonical
// stream of bytes: text unescaped, white space between tokens and the order of
// an object's keys without effect, the parts of the request in the order in
// which templates render them (options of the template, tools, system,
// messages), wherever they stand in the body. Sampling parameters are not in
// it. Between the pieces stand marks, a byte 0xFF and a letter. 0xFF is in no
// UTF-8 text, so no text can forge the border of a message.
//
// One pass over the body checks its structure and notes where the values of
// interest are; a second one, over those values only, feeds them in canonical
// order. Start reading with Scanner.Scan (scan.go); lex.go walks raw JSON,
// fields.go knows the names, chat.go and batch.go the shapes of prompts,
// media.go what is not text, feed.go the canonical stream.
//
// Known limits, all of which cost at most a less good choice of upstream:
//   - Values outside the prompt are checked for balanced brackets and closed
//     strings only; the engine is the judge of the rest.
//   - Of duplicate keys the last counts, as in Python, at the top and in
//     messages and parts; inside tools and tool arguments all of them count.
//   - Numbers in tools are told apart by spelling: 1.0 is not 1.
//   - Text parts of a message are joined by a line feed, as vLLM does it for
//     templates that want strings: a text cut into two parts equals the whole
//     only if a line feed stood where it was cut.
//   - Raw control characters and invalid UTF-8 in strings are taken as they
//     are, but for the byte of marks, which makes a body broken.
//   - UTF-16 bodies, which Python accepts, count as broken.
package prompt
