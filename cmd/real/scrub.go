package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// What differs from run to run and says nothing: ids become numbers in the
// order in which a recording names them, times become 0.
var (
	identifier = regexp.MustCompile(`\b((?:chatcmpl-tool|chatcmpl|cmpl|modelperm|resp|msg|call|rs|fc|tokenize|detokenize|generate-tokens|embd|score|rerank)[-_])([0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}|[0-9a-f]{16,32})\b`)
	bareID     = regexp.MustCompile(`"([0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"`)
	timestamp  = regexp.MustCompile(`("(?:created|created_at|completed_at|arrival_time)": ?)\d{9,}(?:\.\d+)?`)
	socketPID  = regexp.MustCompile(`pid=\d+`)
	wallTime   = regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z?`)
)

func (h *home) scrub(text []byte) []byte {
	seen := make(map[string]string)
	number := func(prefix, id string) string {
		if seen[prefix+id] == "" {
			seen[prefix+id] = fmt.Sprintf("%s%d", prefix, len(seen)+1)
		}
		return seen[prefix+id]
	}
	text = identifier.ReplaceAllFunc(text, func(m []byte) []byte {
		parts := identifier.FindSubmatch(m)
		return []byte(number(string(parts[1]), string(parts[2])))
	})
	text = bareID.ReplaceAllFunc(text, func(m []byte) []byte {
		return []byte(`"` + number("id-", strings.Trim(string(m), `"`)) + `"`)
	})
	text = timestamp.ReplaceAll(text, []byte("${1}0"))
	text = socketPID.ReplaceAll(text, []byte("pid=0"))
	text = wallTime.ReplaceAll(text, []byte("1970-01-01T00:00:00Z"))
	text = bytes.ReplaceAll(text, []byte(h.environment()), []byte("/venv"))
	return bytes.ReplaceAll(text, []byte(h.model(tinyModel)), []byte("/model"))
}

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (\S+)$`)
	bucketEdge = regexp.MustCompile(`\ble="([^"]*)"`)
)

// scrubMetrics keeps a page's lines and their order. Values that are times or
// that the process or the moment decides become 0; of a histogram of seconds
// only the count stays, in the last bucket. Times of creation become 1.7e+09.
func (h *home) scrubMetrics(page []byte) []byte {
	lines := strings.Split(string(h.scrub(page)), "\n")
	for i, line := range lines {
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name, labels, value := m[1], m[2], m[3]
		edge := ""
		if e := bucketEdge.FindStringSubmatch(labels); e != nil {
			edge = e[1]
		}
		switch {
		case strings.HasSuffix(name, "_created"), name == "process_start_time_seconds":
			value = "1.7e+09"
		case strings.HasPrefix(name, "process_"), strings.HasPrefix(name, "python_gc_"), strings.HasPrefix(name, "http_"):
			value = "0.0"
		case strings.Contains(name, "_seconds_bucket") && edge != "+Inf", strings.HasSuffix(name, "_seconds_sum"),
			strings.HasPrefix(name, "vllm:iteration_tokens_total"), strings.HasPrefix(name, "vllm:estimated_"):
			value = "0.0"
		}
		lines[i] = name + labels + " " + value
	}
	return []byte(strings.Join(lines, "\n"))
}
