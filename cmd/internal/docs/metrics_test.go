package docs

import (
	"encoding/json"
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// family is what queries may name of a metric.
type family struct {
	kind   dto.MetricType
	labels map[string][]string // values by name
}

// families reads a page.
func families(t *testing.T, page string) map[string]family {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	parsed, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]family)
	for name, f := range parsed {
		of := family{kind: f.GetType(), labels: make(map[string][]string)}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				of.labels[l.GetName()] = append(of.labels[l.GetName()], l.GetValue())
			}
		}
		all[name] = of
	}
	return all
}

const prefix = "caddy_llm_prefix_"

var (
	fullName = regexp.MustCompile(prefix + `[a-z_]+[a-z]`)
	// A line of a table: names, their labels, their type.
	row      = regexp.MustCompile("(?m)^\\| (`[a-z_`, ]+`) \\|([^|]*)\\| ([a-z]+) \\|")
	lastPart = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// Every metric of the docs is on a gateway's page with the labels that they
// tell, and docs/metrics.md has every metric of the page.
func TestMetricsAreThere(t *testing.T) {
	page := families(t, start(t, "").metrics())
	for _, p := range pages(t) {
		for _, name := range fullName.FindAllString(p.text, -1) {
			_, whole := page[name]
			if _, of := page[lastPart.ReplaceAllString(name, "")]; !whole && !of {
				t.Errorf("%s names %s, which is on no page", p.path, name)
			}
		}
	}
	table, _, ok := strings.Cut(source(t, "docs/metrics.md"), "### Reasons of a decision")
	if !ok {
		t.Fatal("docs/metrics.md has no part on reasons")
	}
	described := make(map[string]bool)
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		var labels []string
		for _, l := range span.FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, l[1])
		}
		for _, n := range span.FindAllStringSubmatch(m[1], -1) {
			name := prefix + n[1]
			described[name] = true
			of, ok := page[name]
			if !ok {
				t.Errorf("docs/metrics.md names %s, which is on no page", name)
				continue
			}
			var has []string
			for l := range of.labels {
				has = append(has, l)
			}
			slices.Sort(has)
			slices.Sort(labels)
			if kind := strings.ToLower(of.kind.String()); kind != m[3] {
				t.Errorf("docs/metrics.md says that %s is a %s, it is a %s", name, m[3], kind)
			}
			if !slices.Equal(has, labels) {
				t.Errorf("docs/metrics.md says that %s has the labels %v, it has %v", name, labels, has)
			}
		}
	}
	for name := range page {
		if strings.HasPrefix(name, prefix) && !described[name] {
			t.Errorf("docs/metrics.md lacks %s", name)
		}
	}
}

// constants are the string constants of a file of the plugin whose names begin
// with start.
func constants(t *testing.T, file, start string) (values []string) {
	t.Helper()
	for _, d := range parse(t, file).Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if strings.HasPrefix(v.Names[0].Name, start) && len(v.Values) == 1 {
				values = append(values, text(t, v.Values[0]))
			}
		}
	}
	if len(values) < 5 {
		t.Fatalf("%s has %v", file, values)
	}
	return values
}

// Every reason, result or place that a metric, a log line or a header may tell
// is explained, where such words are.
func TestReasonsAreExplained(t *testing.T) {
	for title, words := range map[string][]string{
		"Reasons of a decision": constants(t, "route/api.go", "Reason"),
		"Reasons of a fallback": constants(t, "selectread.go", "why"),
		"Results of a scrape":   append(constants(t, "internal/scrape/attempt.go", "Reason"), "ok"),
		"Places of a fault":     constants(t, "guard.go", "in"),
	} {
		known := make(map[string]bool)
		for line := range strings.Lines(part(t, "docs/metrics.md", title)) {
			if cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |"); ok && strings.HasPrefix(line, "| `") {
				for _, m := range span.FindAllStringSubmatch(cell, -1) {
					known[m[1]] = true
				}
			}
		}
		for _, word := range words {
			if !known[word] {
				t.Errorf("docs/metrics.md, %s, doesn't explain %q", title, word)
			}
			delete(known, word)
		}
		for word := range known {
			t.Errorf("docs/metrics.md, %s, explains %q, which nothing tells", title, word)
		}
	}
}

// part is what stands below a heading of a page, to the next.
func part(t *testing.T, path, title string) string {
	t.Helper()
	_, after, ok := strings.Cut(source(t, path), "# "+title+"\n")
	if !ok {
		t.Fatalf("%s has no part %q", path, title)
	}
	before, _, _ := strings.Cut(after, "\n#")
	return before
}

var placeholder = regexp.MustCompile(`\{http\.reverse_proxy\.llm\.[a-z_.*]*[a-z_*]\}`)

// Every placeholder of the docs has a value after an answer that told its
// usage, docs/metrics.md has every placeholder, and the log's object and the
// header say the same.
func TestPlaceholdersLogAndHeader(t *testing.T) {
	named := make(map[string]bool)
	for _, name := range constants(t, "publish.go", "placeholder") {
		name = "{" + name + "}"
		if !placeholder.MatchString(name) {
			continue // what all begin with
		}
		named[name] = true
		if !strings.Contains(source(t, "docs/metrics.md"), "`"+name+"`") {
			t.Errorf("docs/metrics.md lacks %s", name)
		}
	}
	for _, p := range pages(t) {
		for _, name := range placeholder.FindAllString(p.text, -1) {
			named[name] = true
		}
	}
	var site strings.Builder
	for name := range named {
		site.WriteString("log_append " + field(name) + " " + name + "\n")
	}
	g := start(t, site.String())
	g.metrics() // after it the engines and the first chats are known
	header := g.chat().Get("X-LLM")

	log, err := os.ReadFile(g.log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	var last map[string]any
	for _, line := range slices.Backward(lines) {
		if strings.Contains(line, "handled request") && strings.Contains(line, "/v1/chat") {
			if err := json.Unmarshal([]byte(line), &last); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	object, ok := last["llm_prefix"].(map[string]any)
	if !ok {
		t.Fatalf("no object llm_prefix in the line %v", last)
	}
	for name := range named {
		short := strings.Trim(name[strings.LastIndex(name, ".")+1:], "}")
		if v := last[field(name)]; v == nil || v == "" || v == name {
			t.Errorf("%s is %v after an answered chat", name, v)
		} else if object[short] != v {
			t.Errorf("the log's object says that %s is %v, the placeholder %v", short, object[short], v)
		}
	}
	if len(object) != len(named) {
		t.Errorf("the log's object has %d fields, and there are %d placeholders: %v", len(object), len(named), object)
	}
	if cached, _ := object["cached_tokens"].(float64); cached <= 0 {
		t.Errorf("%v cached tokens of a repeated prompt", object["cached_tokens"])
	}
	if want := "reason=prefix; attempt=1; prompt_tokens="; !strings.Contains(header, want) {
		t.Errorf("the header says %q, want %q in it", header, want)
	}
}

// field is the log's for a placeholder.
func field(placeholder string) string {
	return "f_" + strings.ReplaceAll(strings.Trim(placeholder, "{}"), ".", "_")
}
