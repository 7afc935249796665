package prompt

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// chatOf is a chat body of about n bytes: prose and code with the escapes that
// both have.
func chatOf(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	var b strings.Builder
	b.WriteString(`{"model":"meta-llama/Llama-3.1-8B-Instruct","temperature":0.2,"stream":true,"messages":[{"role":"system","content":"You help."}`)
	for i := 0; b.Len() < n; i++ {
		var text strings.Builder
		for text.Len() < min(1500, n-b.Len()) {
			switch r.IntN(12) {
			case 0:
				text.WriteString("\n")
			case 1:
				fmt.Fprintf(&text, "if x[%d] == \"k%d\" {\n\treturn nil\n}\n", r.IntN(9), r.IntN(99))
			case 2:
				text.WriteString("café, naïve. ")
			default:
				text.WriteString("some words of plain prose, and more of it. ")
			}
		}
		content, _ := json.Marshal(text.String())
		fmt.Fprintf(&b, `,{"role":%q,"content":%s}`, []string{"user", "assistant"}[i%2], content)
	}
	b.WriteString("]}")
	return []byte(b.String())
}

// imageOf is a chat body with one image of n base64 bytes.
func imageOf(n int) []byte {
	return []byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
		strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", n/24) + `"}}]}]}`)
}

func TestScanningAllocatesNothing(t *testing.T) {
	for name, body := range map[string][]byte{
		"chat":  chatOf(32 << 10),
		"image": imageOf(100_000),
		"tools": []byte(seeds[2]),
		"parts": []byte(seeds[3]),
		"named": []byte(`{"tools":[{"type":"namespace","name":"a","tools":[{"type":"function","name":"f"},{"type":"c\u0075stom","name":"g","format":{}}]}],"thinking":{"type":"enabled"},"messages":[{"role":"assistant","tool_plan":"p","citations":[{"start":0}]}]}`),
	} {
		var s Scanner
		if n := testing.AllocsPerRun(100, func() { s.Scan(Chat, body, true, 256) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

// The cost must grow with the body and not with its square, whatever is in it.
func TestFC30TheCostOfABodyIsLinear(t *testing.T) {
	for name, piece := range map[string]string{
		"backslashes":  `\\`,
		"quotes":       `\"`,
		"surrogates":   `\ud83d\ude00`,
		"lone halves":  `\ud83d`,
		"one byte off": `\u0041`,
	} {
		var s Scanner
		body := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat(piece, 4_000_000/len(piece)) + `"}]}`)
		p, status := s.Scan(Chat, body, true, 256)
		if status != OK || p.Bytes < 600_000 {
			t.Errorf("%s: status %d, %d bytes", name, status, p.Bytes)
		}
	}
}

func TestWideObjectsAndLongListsAreRead(t *testing.T) {
	var s Scanner
	wide := `{` + strings.Repeat(`"k":1,`, 200_000) + `"messages":[{` + strings.Repeat(`"k":[],`, 200_000) + `"content":"a"}` + strings.Repeat(`,{"content":"b"}`, 100_000) + `]}`
	p, status := s.Scan(Chat, []byte(wide), true, 64)
	if status != OK || len(p.Chain) < 1000 {
		t.Errorf("status %d, %d blocks; want OK and more than 1000", status, len(p.Chain))
	}
}

// Members of one name that say nothing are compared with the one before, not
// looked for from the beginning.
func TestFC30ManyMembersThatSayNothing(t *testing.T) {
	for _, piece := range []string{`"content":null,`, `"content":"",`, `"content" : "" ,`, `"c\u006fntent":"",`, `"content":[],"content":null,`} {
		var s Scanner
		body := `{"messages":[{` + strings.Repeat(piece, 400_000) + `"content":"a"}]}`
		p, status := s.Scan(Chat, []byte(body), true, 64)
		if want, _ := new(Scanner).Scan(Chat, []byte(`{"messages":[{"content":"a"}]}`), true, 64); status != OK || !slices.Equal(p.Chain, want.Chain) || p.Bytes != want.Bytes {
			t.Errorf("%s: status %d, %d bytes, want %d", piece, status, p.Bytes, want.Bytes)
		}
	}
}

// What other servers and clients never send must not cost more than its length
// either: keys far from their values, marks for a cache on parts that nobody knows,
// and duplicates deep down, where each level is gone through anew.
func TestFC30TheCostOfOddObjectsIsLinear(t *testing.T) {
	deep := strings.Repeat(`[`, 900) + strings.Repeat(`[1],`, 500_000) + `1` + strings.Repeat(`]`, 900)
	many := strings.Repeat(`[1],`, maxLandmarks+1) + `1` // no landmark is left behind them
	wide := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":1,`, i)
		}
		return b.String()
	}(400_000)
	space := strings.Repeat(" ", 1_000_000)
	for name, body := range map[string]string{
		"a key far from its value":   `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id"` + space + `:"x",` + strings.Repeat(`"id":"",`, 300_000) + `"content":"a"}]}]}`,
		"a mark on a deep part":      `{"messages":[{"role":"user","content":[` + many + `,{"type":"x","cache_control":{},"v":` + deep + `}]}]}`,
		"a mark on a wide part":      `{"messages":[{"role":"user","content":[{"type":"x","cache_control":{},` + wide + `"v":1}]}]}`,
		"a wide duplicate":           `{"messages":[{"role":"user","content":[{"type":"x","v":1,"v":1,` + wide + `"w":1}]}]}`,
		"a deep duplicate":           `{"messages":[{"role":"user","content":[` + many + `,{"type":"x","v":1,"v":` + deep + `}]}]}`,
		"a namespace in a namespace": `{"messages":[{"role":"user","content":"a"}],"tools":[` + many + `,` + strings.Repeat(`{"type":"namespace","name":"n","tools":[`, 300) + many + strings.Repeat(`]}`, 300) + `]}`,
		"many namespaces":            `{"messages":[{"role":"user","content":"a"}],"tools":[` + strings.Repeat(`{"type":"namespace","name":"n","tools":[{"name":"f"}]},`, 100_000) + many + `]}`,
	} {
		var s Scanner
		text := []byte(body)
		for try := 1; ; try++ { // a machine that is busy elsewhere may be so once
			began := time.Now()
			if !json.Valid(text) {
				t.Fatalf("%s is no JSON", name)
			}
			valid := time.Since(began)
			began = time.Now()
			_, status := s.Scan(Chat, text, true, 256)
			took := time.Since(began)
			if status != OK || took > 50*valid && try == 3 {
				t.Errorf("%s: status %d after %v, and encoding/json takes %v to go through it", name, status, took, valid)
			}
			if took <= 50*valid || try == 3 {
				break
			}
		}
	}
}

// Recorded conversations where they lie beside the project, else made ones, as a client would
// send it, against the twin.
func TestRealConversationsAgreeWithTheTwin(t *testing.T) {
	files, err := filepath.Glob(filepath.FromSlash("../../../../shared/data/text/*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Log("no conversation files beside the project: only the made ones are checked")
	}
	bodies := [][]byte{chatOf(1000), chatOf(32 << 10), imageOf(1000)}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.TrimSpace(line) != "" {
				bodies = append(bodies, fmt.Appendf(nil, `{"messages":[{"role":"user","content":[%s]}]}`, line))
			}
		}
	}
	var s Scanner
	for _, body := range bodies {
		compare(t, &s, Chat, body)
	}
}

func benchmark(b *testing.B, body []byte) {
	var s Scanner
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		s.Scan(Chat, body, true, 256)
	}
}

func BenchmarkScanChat1KB(b *testing.B)   { benchmark(b, chatOf(1<<10)) }
func BenchmarkScanChat32KB(b *testing.B)  { benchmark(b, chatOf(32<<10)) }
func BenchmarkScanChat1MB(b *testing.B)   { benchmark(b, chatOf(1<<20)) }
func BenchmarkScanImage10MB(b *testing.B) { benchmark(b, imageOf(10<<20)) }
