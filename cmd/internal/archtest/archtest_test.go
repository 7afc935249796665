package archtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/caddyllm/caddy-llm-prefix"

// pure packages are the same program on a wall clock, in a virtual replay and
// in a test. They are told what time it is and what chance decided.
var pure = []string{
	"caddyllm/route",
	"caddyllm/internal/prefix",
	"caddyllm/internal/prompt",
	"caddyllm/internal/enginemetrics",
	"simengine",
	"simengine/internal/kv",
	"simengine/virtual",
}

// impure imports are banned from pure packages, each with the reason.
var impure = map[string]string{
	"net":                                 "a pure package does no I/O",
	"net/http":                            "a pure package does no I/O",
	"os":                                  "a pure package does no I/O and reads no environment",
	"log":                                 "what happened is returned, not printed",
	"math/rand":                           "global randomness makes runs unrepeatable; take a source as an argument",
	"time.Now":                            "now is an argument",
	"go.uber.org/":                        "logging belongs to the glue",
	"github.com/prometheus/client_golang": "metrics belong to the glue",
	"github.com/caddyserver/":             "only caddyllm knows Caddy",
}

// banned imports by the folder whose packages must not have them, directly or
// through others.
var banned = []struct{ from, to, why string }{
	{"caddyllm", module + "/simengine", "the judged shares no code with the judge"},
	{"caddyllm", module + "/cmd", "a library doesn't depend on a program"},
	{"caddyllm/route", module + "/caddyllm/internal/prompt", "the decision sees hashes and lengths, never a body"},
	{"caddyllm/route", module + "/caddyllm/internal/scrape", "the decision is told of the load, it doesn't fetch it"},
	{"caddyllm/internal/scrape", "github.com/caddyserver/", "the poller fetches through a function that it is given"},
	{"simengine", module + "/caddyllm", "the judge shares no code with the judged"},
	{"simengine", module + "/cmd", "a library doesn't depend on a program"},
	{"simengine", "github.com/caddyserver/", "an engine knows nothing of the proxy in front of it"},
	{"cmd/vllmsim", "github.com/caddyserver/", "the simulator stands alone, as an engine does"},
	{"cmd/llmreplay", "github.com/caddyserver/", "the client talks to any gateway"},
}

// only these link a package, directly or through others.
var only = []struct {
	what string
	by   []string
	why  string
}{
	{module + "/simengine/kvevents", []string{"simengine/kvevents", "cmd/vllmsim"}, "a message library is for the simulator's server alone"},
	{"github.com/go-zeromq/zmq4", []string{"simengine/kvevents", "cmd/vllmsim"}, "likewise"},
}

func TestWhoLinksWhat(t *testing.T) {
	packages := list(t)
	for _, rule := range only {
		linked := false
		for path, p := range packages {
			if !slices.Contains(p.Deps, rule.what) {
				continue
			}
			linked = true
			if !slices.Contains(rule.by, path) {
				t.Errorf("%s depends on %s: %s", path, rule.what, rule.why)
			}
		}
		if !linked {
			t.Errorf("the policy names %s, which nobody links any more", rule.what)
		}
	}
}

// goroutineHomes are the only ones that may start goroutines outside of tests
// and commands; each says who stops what it starts.
var goroutineHomes = []string{
	"caddyllm/polling.go",
	"caddyllm/internal/scrape/",
	"simengine/live/",
	"simengine/kvevents/",
	"simengine/vllmapi/",
	"cmd/",
}

type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
	Doc        string
}

// list asks the go command for the project's packages, by path in the module.
func list(t *testing.T) map[string]listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,Deps,Doc", module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := make(map[string]listed)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		packages[strings.TrimPrefix(p.ImportPath, module+"/")] = p
	}
	if len(packages) < len(pure) {
		t.Fatalf("go list named %d packages", len(packages))
	}
	return packages
}

func TestImportPolicy(t *testing.T) {
	packages := list(t)
	for _, rule := range banned {
		found := false
		for path, p := range packages {
			if path != rule.from && !strings.HasPrefix(path, rule.from+"/") {
				continue
			}
			found = true
			for _, dep := range p.Deps {
				if dep == rule.to || strings.HasPrefix(dep, strings.TrimSuffix(rule.to, "/")+"/") {
					t.Errorf("%s depends on %s: %s", path, dep, rule.why)
				}
			}
		}
		if !found {
			t.Errorf("the policy names %s, which is no package any more", rule.from)
		}
	}
}

func TestPurePackagesTouchNothing(t *testing.T) {
	packages := list(t)
	for _, path := range pure {
		p, ok := packages[path]
		if !ok {
			t.Errorf("the policy names %s, which is no package any more", path)
			continue
		}
		for _, imported := range p.Imports {
			for ban, why := range impure {
				if imported == ban || strings.HasSuffix(ban, "/") && strings.HasPrefix(imported, ban) || strings.HasPrefix(imported, ban+"/") {
					// A source that is handed in is fine, math/rand/v2 has no
					// other than through its constructors and global functions.
					if imported == "math/rand/v2" && !callsGlobalRand(t, p) {
						continue
					}
					t.Errorf("%s imports %s: %s", path, imported, why)
				}
			}
		}
		for _, call := range calls(t, p) {
			if why := impure[call]; why != "" {
				t.Errorf("%s calls %s: %s", path, call, why)
			}
		}
	}
}

func TestGoroutinesHaveAHome(t *testing.T) {
	for path, p := range list(t) {
		for _, name := range p.GoFiles {
			file := path + "/" + name
			if slices.ContainsFunc(goroutineHomes, func(home string) bool { return strings.HasPrefix(file, home) }) {
				continue
			}
			ast.Inspect(parse(t, filepath.Join(p.Dir, name)), func(n ast.Node) bool {
				if _, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s starts a goroutine; the places that may are %v", file, goroutineHomes)
				}
				return true
			})
		}
	}
}

func TestEachPackageSaysWhatItIs(t *testing.T) {
	for path, p := range list(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment", path)
		}
	}
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// calls lists the package-qualified names that p's files use, as "time.Now".
func calls(t *testing.T, p listed) []string {
	t.Helper()
	var names []string
	for _, name := range p.GoFiles {
		ast.Inspect(parse(t, filepath.Join(p.Dir, name)), func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok {
					names = append(names, x.Name+"."+s.Sel.Name)
				}
			}
			return true
		})
	}
	return names
}

func callsGlobalRand(t *testing.T, p listed) bool {
	t.Helper()
	constructors := []string{"rand.New", "rand.NewPCG", "rand.NewChaCha8", "rand.Rand", "rand.Source", "rand.PCG", "rand.ChaCha8", "rand.Zipf", "rand.NewZipf"}
	for _, call := range calls(t, p) {
		if strings.HasPrefix(call, "rand.") && !slices.Contains(constructors, call) {
			return true
		}
	}
	return false
}
