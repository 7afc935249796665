package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddyllm/caddy-llm-prefix/simengine/vllmapi"
)

func TestFilesOfFaults(t *testing.T) {
	list, err := parseFaults(strings.NewReader(`
- kind: close_stream
  tokens: 10
  at: 10s
  for: 1.5s
  share: 0.5
  servers: [0, 2]
- {"kind":"metrics","body":"","status":204,"header":{"Content-Type":"text/html"},"delay":"2ms"}
- {kind: slow, factor: 3}
`), 3)
	if err != nil || len(list) != 3 {
		t.Fatalf("%v, %v", list, err)
	}
	if f := list[0]; f.Tokens != 10 || f.At != 10*time.Second || f.For != 1500*time.Millisecond || f.Share != 0.5 || f.concerns(1) || !f.concerns(2) || !list[1].concerns(1) || f.line != 2 {
		t.Errorf("the first is %+v", f)
	}
	if f := list[1]; f.Body == nil || *f.Body != "" || f.Status != 204 || f.Header["Content-Type"] != "text/html" || f.Delay != 2*time.Millisecond {
		t.Errorf("the second is %+v", f)
	}
	if list, err := parseFaults(strings.NewReader("[]"), 1); err != nil || len(list) != 0 {
		t.Errorf("an empty list: %v, %v", list, err)
	}
	if _, err := readFaults(filepath.Join(t.TempDir(), "none"), 1); err == nil {
		t.Error("a file that isn't there has faults")
	}
}

// Who mistypes a word is told where.
func TestFilesOfFaultsThatMakeNoSense(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "line 1: want a list of faults",
		"{}":                                     "line 1: want a list of faults",
		"kind: hang":                             "line 1: want a list of faults",
		"- kind: hang\n- kind: hang\n  cuont: 3": `line 3: unknown word "cuont"`,
		"[\n{\"kind\": \"hang\",\n\"unknown\":1}]": `line 3: unknown word "unknown"`,
		"- {kind: hnag}":                  `line 1: checking fault: unknown kind "hnag", want one of [status close`,
		"-\n- kind: hang":                 "line 1: want a fault, such as",
		"- {}":                            `line 1: checking fault: unknown kind ""`,
		"- {kind: hang, at: 10}":          "line 1: at: a time is a number and a unit, such as 1.5s",
		"- {kind: hang, at: soon}":        `line 1: at: time: invalid duration "soon"`,
		"- {kind: hang, count: few}":      "line 1: count: cannot unmarshal !!str `few` into int",
		"- kind: hang\n  count:":          "line 2: count has no value",
		"- {kind: hang, kind: close}":     "line 1: kind is there twice",
		"- {kind: hang, tokens: 3}":       "line 1: checking fault: hang takes no tokens",
		"- {kind: hang, servers: [3]}":    "line 1: server 3, want 0 to 2",
		"- {kind: hang, servers: [-1]}":   "line 1: server -1, want 0 to 2",
		"- {kind: &a hang}\n- {kind: *a}": "line 2: kind is an alias, want a value",
		"- kind: slow":                    "line 1: checking fault: factor is 0",
		"- kind: hang\n---\n- kind: hang": "something follows the list",
		"- {kind: hang":                   "line 1: did not find expected",
		"[" + strings.Repeat("{kind: hang},", maxFaults+1) + "]": "1025 faults, want at most 1024",
		"# " + strings.Repeat("x", maxFaultBytes):                "more than 4194304 bytes",
	} {
		list, err := parseFaults(strings.NewReader(text), 3)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseFaults(%.60q) = %+v, %v; want %s", text, list, err, want)
		}
	}
}

// Help is the manual: it names each kind and each word, and no other.
func TestHelpTellsOfAllFaults(t *testing.T) {
	_, list, _ := strings.Cut(long, "Kinds that hit requests")
	told := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^    ([a-z_]+)  `).FindAllStringSubmatch(list, -1) {
		told[m[1]] = true
	}
	for _, kind := range vllmapi.FaultKinds() {
		if !told[string(kind)] {
			t.Errorf("help doesn't tell of %s", kind)
		}
		delete(told, string(kind))
	}
	if len(told) > 0 {
		t.Errorf("help tells of kinds that there aren't: %v", told)
	}
	for word := range words {
		if !regexp.MustCompile(`\b` + word + `\b`).MatchString(long) {
			t.Errorf("help doesn't tell of %s", word)
		}
	}
}

func FuzzParseFaults(f *testing.F) {
	f.Add([]byte(`[{"kind":"close_stream","tokens":10,"at":"10s","for":"1.5s","servers":[0]}]`))
	f.Add([]byte(`[{"kind":"metrics","body":"x","header":{"A":"b"},"cut":true}]`))
	f.Add([]byte("- kind: hang\n  share: .5\n- {kind: &a close, count: 3}\n- {kind: *a}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseFaults(bytes.NewReader(text), 2)
		if err != nil {
			return
		}
		for _, s := range list {
			if err := s.Validate(); err != nil {
				t.Errorf("%+v: %v", s, err)
			}
		}
	})
}

func TestAdminInterface(t *testing.T) {
	p := start(t, "--listen", "127.0.0.1:0", "--count", "2", "--admin", "127.0.0.1:0")
	p.listening(t, "model=llama3.1-8b preset=llama3.1-8b-h100")
	p.listening(t, "model=llama3.1-8b preset=llama3.1-8b-h100")
	line, err := p.lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	admin := strings.TrimPrefix(strings.TrimSpace(line), "vllmsim: faults at ")
	var list []shown
	if status := call(t, "GET", admin, "", &list); status != 200 || len(list) != 0 {
		t.Errorf("at first: %d, %v", status, list)
	}
	var added struct{ IDs []int }
	if status := call(t, "POST", admin, "- {kind: hang, count: 3, servers: [1]}\n- {kind: slow, factor: 2, at: 1h}", &added); status != 200 || len(added.IDs) != 2 {
		t.Errorf("adding: %d, %v", status, added)
	}
	call(t, "GET", admin, "", &list)
	if len(list) != 2 || list[0].ID != added.IDs[0] || list[0].Kind != "hang" || list[0].Count != 3 || list[1].At != "1h0m0s" || list[1].Factor != 2 {
		t.Errorf("list is %+v", list)
	}
	var refused struct{ Error string }
	if status := call(t, "POST", admin, "- {kind: hang}\n- {kind: hang, cuont: 3}", &refused); status != 400 || refused.Error != `line 2: unknown word "cuont"` {
		t.Errorf("a word that there isn't: %d, %q", status, refused.Error)
	}
	if status := call(t, "DELETE", admin+"/77", "", &refused); status != 404 {
		t.Errorf("removing what isn't there: %d", status)
	}
	list = nil
	if status := call(t, "DELETE", admin+"/1", "", &list); status != 200 || len(list) != 1 || list[0].Kind != "slow" {
		t.Errorf("after the first is removed: %d, %+v", status, list)
	}
	if status := call(t, "POST", admin, "["+strings.Repeat("{kind: hang},", maxFaults)+"]", &refused); status != 400 || !strings.Contains(refused.Error, "remove some") {
		t.Errorf("too many: %d, %q", status, refused.Error)
	}
}

// A list is added whole or not at all.
func TestAListOfFaultsIsAddedWholeOrNotAtAll(t *testing.T) {
	s := script{servers: []*vllmapi.Faults{newFaultless(t)}}
	list, err := parseFaults(strings.NewReader("- {kind: hang}\n- {kind: refuse}"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := s.add(list); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") || len(s.show()) != 0 {
		t.Errorf("nothing listens, and refusing is %v, %v; left are %v", ids, err, s.show())
	}
	if ids, err := s.add(list[:1]); err != nil || len(ids) != 1 {
		t.Errorf("the first alone: %v, %v", ids, err)
	}
}

func newFaultless(t *testing.T) *vllmapi.Faults {
	t.Helper()
	_, c, err := parsed(t)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer(&options{model: "m", engines: 1, profile: "main", speed: 1, keepAlive: time.Second}, c, 0)
	if err != nil {
		t.Fatal(err)
	}
	if s.api.Faults() == nil {
		t.Fatal(errors.New("a server without faults"))
	}
	return s.api.Faults()
}
