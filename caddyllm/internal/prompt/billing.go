package prompt

import "bytes"

// billing starts a line that a widespread coding client puts before its system
// prompt, with a value that is new in every request. Engines that know it drop
// it; for others the prompt is new each time, and where it goes is no matter.
var billing = []byte("x-anthropic-billing-header:")

// billingMax bounds that line, bytes.
const billingMax = 512

// withoutBilling drops a billing line from the raw text of a string that begins
// with one: up to the line feed, or else to the end of its last known value, or
// else all of it. The first text of a prompt may have one, and any of the system's:
// which of these has it differs by the client's release, and engines drop it
// wherever it begins one.
func withoutBilling(raw []byte) []byte {
	head := raw[:min(len(raw), billingMax)]
	if i := bytes.Index(head, []byte(`\n`)); i >= 0 {
		return raw[i+2:]
	}
	if i := bytes.Index(head, []byte("cch=")); i >= 0 {
		if j := bytes.IndexByte(head[i:], ';'); j >= 0 {
			return raw[i+j+1:]
		}
	}
	if len(raw) <= billingMax {
		return nil
	}
	return raw
}
