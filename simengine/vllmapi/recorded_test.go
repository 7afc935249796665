package vllmapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// recordings are what a vLLM server answered, by version: see the README there.
const recordings = "../../testdata/vllm"

// asked is a request and the answer that it got.
type asked struct {
	method, path string
	header       []string
	body         string

	status int
	got    http.Header
	answer string
}

func readAsked(t *testing.T, file string) asked {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var a asked
	request, answer, ok := strings.Cut(string(text), "\n< ")
	head, body, _ := strings.Cut(request, "\n\n")
	if !ok {
		t.Fatalf("%s has no answer", file)
	}
	a.body = strings.TrimSuffix(body, "\n")
	for i, line := range strings.Split(strings.TrimSuffix(head, "\n"), "\n") {
		line = strings.TrimPrefix(line, "> ")
		if i == 0 {
			a.method, a.path, _ = strings.Cut(line, " ")
			continue
		}
		name, value, _ := strings.Cut(line, ": ")
		a.header = append(a.header, name, value)
	}
	head, a.answer, _ = strings.Cut(answer, "\n\n")
	a.got = http.Header{}
	for i, line := range strings.Split(head, "\n") {
		line = strings.TrimPrefix(line, "< ")
		if i == 0 {
			if _, err := fmt.Sscan(line, &a.status); err != nil {
				t.Fatal(err)
			}
			continue
		}
		name, value, _ := strings.Cut(line, ": ")
		a.got.Set(name, value)
	}
	return a
}

// unlike are exchanges in which this server is another one than that which was
// recorded, with the reason.
var unlike = map[string]string{
	"embeddings":             "a text model has none; this server has them beside the rest",
	"completion-stop":        "no word of this server ends in u",
	"completion-stop-kept":   "likewise",
	"completion-stream-stop": "likewise",
	"completion-stop-token":  "no token of that number is generated",
}

// changed are the bodies that are changed for this server: its words aren't
// those of a model with random weights, whose calls don't end.
var changed = strings.NewReplacer(`"max_tokens": 60`, `"max_tokens": 16`)

// What vLLM itself answered, this server answers in the same form: status,
// header, order and type of all members, events and their order, and errors
// word for word.
func TestAnswersHaveTheFormOfRecordedOnes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recordings, Version, "exchanges", "*.txt"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d recordings of vLLM %s: %v", len(files), Version, err)
	}
	engine := benchEngine
	engine.MaxModelLen, engine.BlockSize, engine.Blocks = 512, 32, 129
	synctest.Test(t, func(t *testing.T) {
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".txt")
			a := readAsked(t, file)
			b := newBench(t, engine, 1, func(c *Config) { c.Model = "tiny-llama" })
			r := b.do(t.Context(), a.method, a.path, changed.Replace(a.body), a.header...)
			if unlike[name] != "" {
				if r.Code == a.status && form200(r.Body.String()) == form200(a.answer) {
					t.Errorf("%s: is answered as recorded, though it is listed as unlike", name)
				}
				continue
			}
			if r.Code != a.status {
				t.Errorf("%s: status %d, want %d: %s", name, r.Code, a.status, r.Body)
				continue
			}
			for _, h := range []string{"Content-Type", "Server", "Vary", "Allow", "Endpoint-Load-Metrics", "Location",
				"Access-Control-Allow-Headers", "Access-Control-Allow-Methods", "Access-Control-Allow-Origin", "Access-Control-Max-Age"} {
				got, want := r.Header().Get(h), strings.Replace(a.got.Get(h), "HOST", "example.com", 1)
				if got != want {
					t.Errorf("%s: %s is %q, want %q", name, h, got, want)
				}
			}
			got, want := form200(r.Body.String()), form200(a.answer)
			if a.status >= 400 {
				got, want = strings.TrimSpace(r.Body.String()), strings.TrimSpace(a.answer)
			}
			if a.method != http.MethodHead && got != want {
				t.Errorf("%s:\n got %s\nwant %s", name, got, want)
			}
		}
	})
}

// form200 is an answer without what differs from model to model.
func form200(answer string) string {
	if !strings.HasPrefix(answer, "data: ") && !strings.HasPrefix(answer, "event: ") {
		return shape(answer)
	}
	// Events of one choice come in order; whose come first is chance, there and
	// here. The choice with most kinds of events stands for all: a token that is
	// half a character brings none. But each has one beginning and one end.
	choices := make(map[string][]string)
	ends, last := 0, ""
	for _, e := range strings.Split(strings.TrimSpace(answer), "\n\n") {
		name, data, _ := strings.Cut(e, "data: ")
		choice := ""
		if m := choiceIndex.FindStringSubmatch(data); m != nil {
			choice = m[1]
		}
		if data == "[DONE]" {
			ends++
		} else {
			data = shape(data)
		}
		last = name + data
		choices[choice] = append(choices[choice], last)
	}
	var most []string
	var b strings.Builder
	for _, choice := range slices.Sorted(maps.Keys(choices)) {
		// How many tokens an event brings depends on the reader's speed.
		events := slices.Compact(choices[choice])
		if choice == "" {
			b.WriteString(strings.Join(events, "\n") + "\n")
			continue
		}
		if len(events) > len(most) {
			most = events
		}
		fmt.Fprintf(&b, "choice %s from %s to %s\n", choice, events[0], events[len(events)-1])
	}
	fmt.Fprintf(&b, "%s\n%d ends, last %s", strings.Join(most, "\n"), ends, last)
	return b.String()
}

var choiceIndex = regexp.MustCompile(`"choices":\[\{"index":(\d+)`)

// told are the members whose texts are of the protocol, not of the model.
var told = map[string]bool{
	"object": true, "type": true, "role": true, "finish_reason": true, "status": true, "model": true, "owned_by": true,
	"service_tier": true, "truncation": true, "tool_choice": true, "reason": true, "name": true, "version": true, "instructions": true,
}

// shape is JSON with all its members, but with other texts and numbers. Lists
// of equal shapes are one.
func shape(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	var walk func(name string) string
	walk = func(name string) string {
		t, err := d.Token()
		if err != nil {
			return "!" + text
		}
		switch v := t.(type) {
		case json.Delim:
			var items []string
			for d.More() {
				if v == '[' {
					items = append(items, walk(name))
					continue
				}
				key, _ := d.Token()
				value := walk(fmt.Sprint(key))
				if name == "top_logprobs" { // by token
					key = "s"
				}
				items = append(items, fmt.Sprintf("%v:%s", key, value))
			}
			end, _ := d.Token()
			if v == '[' && name != "choices" {
				items = slices.Compact(items)
			}
			return fmt.Sprint(v) + strings.Join(items, ",") + fmt.Sprint(end)
		case string:
			if told[name] {
				return v
			}
			return "s"
		case float64:
			return "0"
		}
		return fmt.Sprint(t)
	}
	return walk("")
}

// Words of this server, in answers that were recorded with a model's.
func TestRecordingsAreRead(t *testing.T) {
	a := readAsked(t, filepath.Join(recordings, Version, "exchanges", "chat-request-id.txt"))
	if a.method != "POST" || a.path != chatPath || a.status != 200 || !slices.Contains(a.header, "from-the-client") || !json.Valid([]byte(a.body)) {
		t.Errorf("read as %+v", a)
	}
	if got := shape(`{"a":[1,2.5],"type":"x","b":[{"c":null},{"c":true}],"d":"é"}`); got != `{a:[0],type:x,b:[{c:<nil>},{c:true}],d:s}` {
		t.Errorf("the shape is %s", got)
	}
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(Version) {
		t.Errorf("version %q", Version)
	}
}
