package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dustin/go-humanize"
)

// parse reads a file of the plugin.
func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, source(t, "caddyllm/"+name), parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// options are those that the Caddyfile's parser knows.
func options(t *testing.T) []string {
	t.Helper()
	names := []string{"fallback"} // the one that isn't in a table
	for _, d := range parse(t, "caddyfile.go").Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if name := v.Names[0].Name; name != "options" && name != "pairOptions" {
				continue
			}
			for _, e := range v.Values[0].(*ast.CompositeLit).Elts {
				names = append(names, text(t, e.(*ast.KeyValueExpr).Key))
			}
		}
	}
	if len(names) < 10 {
		t.Fatalf("found the options %v", names)
	}
	slices.Sort(names)
	return names
}

// text is the value of a constant string expression.
func text(t *testing.T, e ast.Expr) string {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		return s
	case *ast.BinaryExpr:
		return text(t, e.X) + text(t, e.Y)
	case *ast.Ident:
		if e.Obj != nil {
			if v, ok := e.Obj.Decl.(*ast.ValueSpec); ok && len(v.Values) == 1 {
				return text(t, v.Values[0])
			}
		}
	}
	t.Fatalf("can't tell the value of a %T", e)
	return ""
}

var (
	section  = regexp.MustCompile("(?m)^### `([a-z_]+)`$")
	standard = regexp.MustCompile(`(?s)Default: (.*?)\.( |\n|$)`)
	bounds   = regexp.MustCompile(`Bounds: (\S+ ?[KMG]?i?B?) to (\S+ ?[KMG]?i?B?)\.`)
	jsonName = regexp.MustCompile(`json:"([a-z_]+)`)
)

// described are the sections of docs/options.md by the option's name.
func described(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	page := source(t, "docs/options.md")
	found := section.FindAllStringSubmatchIndex(page, -1)
	for i, m := range found {
		end := len(page)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		all[page[m[2]:m[3]]] = page[m[1]:end]
	}
	return all
}

// Each option has a section, and each section an option.
func TestOptionsAreDescribed(t *testing.T) {
	known := options(t)
	if got := slices.Sorted(maps.Keys(described(t))); !slices.Equal(got, known) {
		t.Errorf("docs/options.md has sections on\n%v, the Caddyfile's parser knows\n%v", got, known)
	}
	grammar, _, _ := strings.Cut(source(t, "docs/options.md"), "###")
	for _, name := range known {
		if !regexp.MustCompile(`(?m)^        ` + name + ` `).MatchString(grammar) {
			t.Errorf("the grammar in docs/options.md lacks %s", name)
		}
	}
}

// The defaults are those that the comments of the module's fields tell, which
// are its manual on caddyserver.com.
func TestDefaultsAreThoseOfTheModule(t *testing.T) {
	sections := described(t)
	checked := 0
	ast.Inspect(parse(t, "policy.go"), func(n ast.Node) bool {
		f, ok := n.(*ast.Field)
		if !ok || f.Tag == nil {
			return true
		}
		name := jsonName.FindStringSubmatch(f.Tag.Value)
		if name == nil {
			return true
		}
		want := standard.FindStringSubmatch(f.Doc.Text())
		got := standard.FindStringSubmatch(sections[name[1]])
		switch {
		case got == nil:
			t.Errorf("docs/options.md tells no default of %s", name[1])
		case want != nil && oneLine(got[1]) != oneLine(want[1]):
			t.Errorf("docs/options.md says that the default of %s is %q, the module %q", name[1], oneLine(got[1]), oneLine(want[1]))
		}
		checked++
		return true
	})
	if checked != len(sections) {
		t.Errorf("%d fields have a JSON name, and there are %d options", checked, len(sections))
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// What is on a bound is taken, and what is beyond it refused.
func TestBoundsAreThose(t *testing.T) {
	takes := func(name, value string) error {
		_, err := adapt(fmt.Sprintf(":8080 {\nreverse_proxy a:1 {\nlb_policy llm_prefix {\n%s %s\n}\n}\n}\n", name, value))
		return err
	}
	checked := 0
	for name, text := range described(t) {
		m := bounds.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		checked++
		for i, beyond := range []int64{-1, 1} {
			value := strings.ReplaceAll(m[i+1], " ", "")
			out := ""
			if d, err := time.ParseDuration(value); err == nil {
				out = (d + time.Duration(beyond)).String()
			} else if n, err := humanize.ParseBytes(value); err == nil {
				out = strconv.FormatInt(int64(n)+beyond, 10)
			} else {
				t.Errorf("%s: can't read the bound %q", name, m[i+1])
				continue
			}
			if err := takes(name, value); err != nil {
				t.Errorf("%s %s: %v", name, value, err)
			}
			if takes(name, out) == nil {
				t.Errorf("%s %s is taken; docs/options.md says that the bound is %s", name, out, value)
			}
		}
	}
	if checked != 4 {
		t.Errorf("docs/options.md tells the bounds of %d options, want those of max_body, block, memory and scrape_interval", checked)
	}
}

var suffix = regexp.MustCompile(`\{"(/[a-z0-9/_]+)", [A-Z]`)

// Each path of a prompt is among those that docs/engines.md lists.
func TestPathsOfPromptsAreListed(t *testing.T) {
	page := source(t, "docs/engines.md")
	known := suffix.FindAllStringSubmatch(source(t, "caddyllm/internal/prompt/kind.go"), -1)
	if len(known) < 10 {
		t.Fatalf("found the paths %v", known)
	}
	listed := make(map[string]bool)
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| `/") {
			cell, _, _ := strings.Cut(line[2:], " |")
			for _, m := range span.FindAllStringSubmatch(cell, -1) {
				listed[m[1]] = true
			}
		}
	}
	for _, m := range known {
		if !listed[m[1]] {
			t.Errorf("docs/engines.md doesn't list %s", m[1])
		}
		delete(listed, m[1])
	}
	for path := range listed {
		t.Errorf("docs/engines.md lists %s, which is no path of a prompt", path)
	}
}
