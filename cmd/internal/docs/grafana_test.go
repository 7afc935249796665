package docs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// query is one expression of dashboard or alerts.
type query struct{ where, text string }

// ruleFile is Prometheus' form of rules, as far as it is used.
type ruleFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

func alerts(t *testing.T) (all []query) {
	t.Helper()
	var file ruleFile
	d := yaml.NewDecoder(strings.NewReader(source(t, "docs/grafana/alerts.yaml")))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	help := source(t, "docs/troubleshooting.md")
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("a rule of %s lacks name, severity or summary: %+v", g.Name, r)
			}
			if !strings.Contains(help, "`"+r.Alert+"`") {
				t.Errorf("docs/troubleshooting.md doesn't say what to do about %s", r.Alert)
			}
			all = append(all, query{"alert " + r.Alert, r.Expr})
		}
	}
	return all
}

// dashboard is Grafana's form, as far as it is checked.
type dashboard struct {
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
}

func panels(t *testing.T) (all []query, variables []string) {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(source(t, "docs/grafana/dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	ids := make(map[int]bool)
	places := make(map[[2]int]string)
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %s is wider than the page", p.Title)
		}
		for y := range p.GridPos.H {
			for x := range p.GridPos.W {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := places[at]; other != "" {
					t.Fatalf("panels %s and %s overlap", other, p.Title)
				}
				places[at] = p.Title
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %s has no query", p.Title)
		}
		for _, target := range p.Targets {
			all = append(all, query{"panel " + p.Title, target.Expr})
		}
	}
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
		if v.Type == "query" {
			// label_values(metric, label) is Grafana's own.
			metric, label, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Query, "label_values("), ")"), ", ")
			if !ok {
				t.Fatalf("variable %s: %s", v.Name, v.Query)
			}
			all = append(all, query{"variable " + v.Name, fmt.Sprintf("count by (%s) (%s)", label, metric)})
		}
	}
	return all, variables
}

// Labels that Prometheus adds to what it scrapes.
var scrapeLabels = []string{"instance", "job"}

// Each query of dashboard and alerts is one that Prometheus takes, and names no
// metric, label or value that a running gateway doesn't have.
func TestQueriesAgainstARunningGateway(t *testing.T) {
	page := families(t, start(t, "").metrics())
	all, variables := panels(t)
	if len(all) < 20 || len(variables) == 0 {
		t.Fatalf("found %d queries and the variables %v", len(all), variables)
	}
	used := make(map[string]bool)
	rules := alerts(t)
	if len(rules) < 5 {
		t.Fatalf("found %d alerts", len(rules))
	}
	for _, q := range append(all, rules...) {
		text := strings.ReplaceAll(q.text, "$__rate_interval", "5m")
		for _, v := range variables {
			text = strings.ReplaceAll(text, "$"+v, ".*")
		}
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v in %s", q.where, err, text)
			continue
		}
		c := checker{t: t, where: q.where, page: page, used: used}
		c.check(expr)
	}
	for name := range page {
		if strings.HasPrefix(name, prefix) && !used[name] {
			t.Errorf("the dashboard doesn't show %s", name)
		}
	}
}

type checker struct {
	t     *testing.T
	where string
	page  map[string]family
	used  map[string]bool
}

// check looks at all metrics below a node, and at the labels that it groups by.
func (c *checker) check(node parser.Node) {
	var names []string
	parser.Inspect(node, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			names = append(names, c.selector(n))
		case *parser.AggregateExpr:
			c.grouping(n.Expr, n.Grouping)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				c.grouping(n.LHS, n.VectorMatching.MatchingLabels)
			}
		}
		return nil
	})
	if len(names) == 0 {
		c.t.Errorf("%s names no metric", c.where)
	}
}

// selector checks one metric and what it is narrowed to.
func (c *checker) selector(s *parser.VectorSelector) string {
	name, of := c.family(s.Name)
	for _, m := range s.LabelMatchers {
		if m.Name == labels.MetricName || slices.Contains(scrapeLabels, m.Name) {
			continue
		}
		values, ok := of.labels[m.Name]
		if !ok {
			c.t.Errorf("%s: %s has no label %s", c.where, name, m.Name)
		} else if m.Type == labels.MatchEqual && !slices.Contains(values, m.Value) {
			c.t.Errorf("%s: no series of %s has %s=%q", c.where, name, m.Name, m.Value)
		}
	}
	return name
}

// family finds a metric on the page, also by the name of a part of it.
func (c *checker) family(name string) (string, family) {
	if of, ok := c.page[name]; ok {
		c.used[name] = true
		return name, of
	}
	whole := lastPart.ReplaceAllString(name, "")
	of, ok := c.page[whole]
	if !ok {
		c.t.Errorf("%s: %s is on no page", c.where, name)
	}
	c.used[whole] = true
	return whole, of
}

// grouping checks labels that something is grouped by.
func (c *checker) grouping(expr parser.Expr, by []string) {
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		name, of := c.family(s.Name)
		for _, label := range by {
			if _, ok := of.labels[label]; !ok && label != "le" && !slices.Contains(scrapeLabels, label) {
				c.t.Errorf("%s: %s is grouped by %s, which it doesn't have", c.where, name, label)
			}
		}
		return nil
	})
}
