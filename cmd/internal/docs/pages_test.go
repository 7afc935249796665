package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository's.
const root = "../../.."

// page is one file of the documentation.
type page struct {
	path   string // from the root
	text   string
	blocks []block
}

// block is a fenced block of a page.
type block struct {
	line     int
	language string
	text     string
}

// pages reads README, changelog and docs.
func pages(t *testing.T) []page {
	t.Helper()
	paths := []string{"README.md", "CHANGELOG.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			paths = append(paths, strings.TrimPrefix(f, root+"/"))
		}
	}
	var all []page
	for _, path := range paths {
		p := page{path: path, text: source(t, path)}
		p.cut(t)
		all = append(all, p)
	}
	if len(all) < 5 {
		t.Fatalf("found %d pages of documentation, want all of them", len(all))
	}
	return all
}

// source reads a file of the repository.
func source(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cut finds the fenced blocks.
func (p *page) cut(t *testing.T) {
	t.Helper()
	var open *block
	for i, line := range strings.Split(p.text, "\n") {
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			open = &block{line: i + 1, language: language}
		case fence:
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil {
		t.Errorf("%s:%d: the block has no end", p.path, open.line)
	}
}

// code is all that a page sets as code: blocks, fenced or indented, and spans.
func (p *page) code() string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(p.text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if fenced || strings.HasPrefix(line, "    ") {
			b.WriteString(line)
			continue
		}
		for _, m := range span.FindAllStringSubmatch(line, -1) {
			b.WriteString(m[1] + "\n")
		}
	}
	return b.String()
}

var span = regexp.MustCompile("`([^`]+)`")

// Every fenced block says what it is, so that none that is a Caddyfile is
// missed.
func TestBlocksSayWhatTheyAre(t *testing.T) {
	known := map[string]bool{"caddyfile": true, "sh": true, "json": true, "text": true, "yaml": true}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if !known[b.language] {
				t.Errorf("%s:%d: block in %q", p.path, b.line, b.language)
			}
			if b.language != "caddyfile" && strings.Contains(b.text, "reverse_proxy ") {
				t.Errorf("%s:%d: a Caddyfile in a block that isn't called one", p.path, b.line)
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	unslug  = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors are those that GitHub makes of a page's headings.
func anchors(text string) map[string]bool {
	all := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		slug := unslug.ReplaceAllString(strings.ToLower(m[1]), "")
		all[strings.ReplaceAll(slug, " ", "-")] = true
	}
	return all
}

func TestLinksLead(t *testing.T) {
	links := 0
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.text, -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			links++
			path := p.path
			if to != "" {
				path = filepath.Join(filepath.Dir(p.path), to)
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil || strings.HasPrefix(path, "..") {
				t.Errorf("%s links to %s, which is not there", p.path, m[1])
				continue
			}
			if anchor != "" && !anchors(source(t, path))[anchor] {
				t.Errorf("%s links to %s, and there is no such heading", p.path, m[1])
			}
		}
	}
	if links == 0 {
		t.Error("found no link")
	}
}

// Each page is linked from the README.
func TestReadmeLinksEachPage(t *testing.T) {
	readme := source(t, "README.md")
	for _, p := range pages(t) {
		if p.path != "README.md" && !strings.Contains(readme, "("+p.path+")") {
			t.Errorf("README.md doesn't link %s", p.path)
		}
	}
}

var (
	target = regexp.MustCompile(`\bmake ([a-z][a-z0-9-]*)`)
	rule   = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
)

// Every target that a page names is there, and every one that is there is named
// but for the plain ones.
func TestMakeTargetsExist(t *testing.T) {
	rules := make(map[string]bool)
	for _, m := range rule.FindAllStringSubmatch(source(t, "Makefile"), -1) {
		rules[m[1]] = true
	}
	named := make(map[string]bool)
	for _, p := range pages(t) {
		for _, m := range target.FindAllStringSubmatch(p.code(), -1) {
			named[m[1]] = true
			if !rules[m[1]] {
				t.Errorf("%s names make %s, which the Makefile doesn't have", p.path, m[1])
			}
		}
	}
	// What everybody knows, or another target runs.
	for _, plain := range []string{"all", "build", "vet", "smoke", "lint", "clean", "bench-prompt", "bench-sim", "bench-sim-live"} {
		named[plain] = true
	}
	for name := range rules {
		if !named[name] {
			t.Errorf("no page names make %s", name)
		}
	}
}

var (
	call = regexp.MustCompile(`(?m)\b(vllmsim|llmreplay|caddy llm-[a-z]+|real|demo)\b([^|\n;]*)`)
	flag = regexp.MustCompile(`--([a-z][a-z0-9-]*)`)
)

// The flags of our own commands, as they are in the sources of each.
func TestFlagsExist(t *testing.T) {
	named := 0
	for _, p := range pages(t) {
		code := strings.ReplaceAll(p.code(), "\\\n", " ")
		for _, m := range call.FindAllStringSubmatch(code, -1) {
			folder := "cmd/" + m[1]
			if strings.HasPrefix(m[1], "caddy") {
				folder = "caddyllm"
			}
			for _, f := range flag.FindAllStringSubmatch(m[2], -1) {
				named++
				if f[1] != "help" && !strings.Contains(sources(t, folder), `"`+f[1]+`"`) {
					t.Errorf("%s: %s has no flag --%s", p.path, m[1], f[1])
				}
			}
		}
	}
	if named == 0 {
		t.Error("found no flag")
	}
}

// sources is the Go code of a folder, without tests.
func sources(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources in %s: %v", folder, err)
	}
	var all strings.Builder
	for _, f := range files {
		if !strings.HasSuffix(f, "_test.go") {
			all.WriteString(source(t, strings.TrimPrefix(f, root+"/")))
		}
	}
	return all.String()
}
