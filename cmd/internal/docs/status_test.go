package docs

import (
	"regexp"
	"strings"
	"testing"
)

var route = regexp.MustCompile(`\b(GET|POST|DELETE|PUT) (/llm_prefix/[a-z/{}_]+)`)

// The routes of the admin API, the states of upstreams and the columns of the
// commands are those of the code.
func TestStatusPageSaysWhatIs(t *testing.T) {
	admin, page := sources(t, "caddyllm"), source(t, "docs/status.md")
	named := 0
	for _, p := range pages(t) {
		for _, m := range route.FindAllStringSubmatch(p.text, -1) {
			named++
			if !strings.Contains(admin, `"`+m[2]+`"`) {
				t.Errorf("%s names %s %s, which is no route", p.path, m[1], m[2])
			}
		}
	}
	if named == 0 {
		t.Error("found no route")
	}
	for _, state := range constants(t, "statushint.go", "state") {
		if !strings.Contains(page, "| `"+state+"` |") {
			t.Errorf("docs/status.md doesn't explain the state %s", state)
		}
	}
	golden := oneLine(source(t, "caddyllm/testdata/status/explain.txt")) // columns may be wider with other rows
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "UPSTREAM") && !strings.Contains(golden, oneLine(line)) {
			t.Errorf("docs/status.md shows columns that caddy llm-explain doesn't have: %s", line)
		}
	}
}
