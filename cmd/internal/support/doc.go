// Package support writes the conversation file that the demo replays: customers
// of four small companies ask their support desks, each desk with a handbook
// as its system prompt.
//
// The text is the project's own. Generate is deterministic, so that the file in
// testdata is what the package makes; its test says so and rewrites the file
// with -update.
package support
