package workload

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func open1(t *testing.T, name string, o Options) *Workload {
	t.Helper()
	w, err := Open(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func chains(w *Workload, session int) []uint64 {
	t := w.Sessions[session].Turns[0]
	return t.Content.Tokens(16)[:t.Prompt/16]
}

// shared is the number of leading hashes that two chains have in common.
func shared(a, b []uint64) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// A chain is a function of what each block and all before it hold, however the
// blocks lie across segments.
func TestChainsAreThoseOfTheText(t *testing.T) {
	a := []Segment{{1, 100, 400}, {2, 37, 90}, {3, 500, 2100}}
	b := []Segment{{1, 100, 400}, {2, 37, 90}, {4, 500, 2100}}
	for _, unit := range []int{1, 7, 16, 64, 200} {
		x, y := hash(a, unit, false), hash(b, unit, false)
		if len(x) != 637/unit || shared(x, y) != 137/unit {
			t.Errorf("unit %d: %d blocks, %d shared, want %d and %d", unit, len(x), shared(x, y), 637/unit, 137/unit)
		}
		x, y = hash(a, unit, true), hash(b, unit, true)
		if len(x) != 2590/unit || shared(x, y) != 490/unit {
			t.Errorf("unit %d bytes: %d blocks, %d shared, want %d and %d", unit, len(x), shared(x, y), 2590/unit, 490/unit)
		}
	}
	if x, y := hash(a, 16, false), hash(a[1:], 16, false); shared(x, y) != 0 {
		t.Error("blocks behind different beginnings are equal")
	}
}

// Later turns begin with earlier ones and their answers.
func TestTurnsExtendEachOther(t *testing.T) {
	for _, name := range []string{"chat", "agents"} {
		w := open1(t, name, Options{Requests: 300, Seed: 3})
		for _, s := range w.Sessions {
			for i, turn := range s.Turns {
				if turn.Content != s.Turns[0].Content || turn.Prompt < 1 || turn.Output < 1 || turn.Bytes < turn.Prompt {
					t.Fatalf("%s: turn %d is %+v", name, i, turn)
				}
				if i > 0 && turn.Prompt <= s.Turns[i-1].Prompt+s.Turns[i-1].Output {
					t.Fatalf("%s: turn %d has %d tokens behind %d and %d", name, i, turn.Prompt, s.Turns[i-1].Prompt, s.Turns[i-1].Output)
				}
			}
		}
		if r := w.Requests(); r < 300 || r > 600 || !w.Closed {
			t.Errorf("%s has %d requests, want about 300 in a closed loop", name, r)
		}
	}
}

func TestGeneratorsShareWhatTheySay(t *testing.T) {
	for name, bounds := range map[string][2]float64{
		"chat": {0.8, 0.99}, "agents": {0.9, 0.99}, "tenants": {0.5, 0.95}, "hot": {0.8, 0.95}, "flash": {0.8, 0.97}, "unique": {0, 0},
	} {
		o := Options{Requests: 800, Seed: 1}
		w := open1(t, name, o)
		if s := w.Shareable(64); s < bounds[0] || s > bounds[1] {
			t.Errorf("%s: an infinite cache supplies %.3f, want %v", name, s, bounds)
		}
		if r := w.Rate(); r < 0.7 || r > 1.5 {
			t.Errorf("%s comes at %.2f requests a second, want about 1", name, r)
		}
		again := open1(t, name, o)
		if !reflect.DeepEqual(w.Sessions, again.Sessions) {
			for i := range w.Sessions {
				w.Sessions[i].Turns[0].Content.chains = nil
			}
			if !reflect.DeepEqual(w.Sessions, again.Sessions) {
				t.Errorf("%s differs for the same seed", name)
			}
		}
		if other := open1(t, name, Options{Requests: 800, Seed: 2}); reflect.DeepEqual(chains(w, 0), chains(other, 0)) {
			t.Errorf("%s is the same for another seed", name)
		}
	}
}

// The crowd of flash comes and goes.
func TestFlashIsACrowd(t *testing.T) {
	w := open1(t, "flash:from=0.5,to=0.6,crowd=1", Options{Requests: 1000, Seed: 1})
	crowd := make(map[bool]map[uint64]bool)
	for i := range w.Sessions {
		share := float64(w.Sessions[i].Start) / float64(w.Span)
		in := share >= 0.5 && share < 0.6
		if crowd[in] == nil {
			crowd[in] = make(map[uint64]bool)
		}
		crowd[in][chains(w, i)[0]] = true
	}
	if len(crowd[true]) != 1 || len(crowd[false]) < 50 {
		t.Errorf("the crowd has %d beginnings, the others %d", len(crowd[true]), len(crowd[false]))
	}
}

func TestZipfIsUneven(t *testing.T) {
	c := zipf(4, 1)
	want := []float64{12. / 25, 18. / 25, 22. / 25, 1}
	for i := range c {
		if math.Abs(c[i]-want[i]) > 1e-12 {
			t.Fatalf("shares are %v, want %v", c, want)
		}
	}
}

// In a closed loop a higher rate takes more sessions, or none would overlap.
func TestClosedLoopsGrowWithTheRate(t *testing.T) {
	w := open1(t, "chat", Options{Requests: 100, Rate: 50, Seed: 1})
	if least := int(50 * overlap * w.sessionLength() * 0.8); w.Requests() < least {
		t.Errorf("%d requests at 50 a second, want at least %d", w.Requests(), least)
	}
	if w := open1(t, "hot", Options{Requests: 100, Rate: 1000, Seed: 1}); w.Requests() != 100 {
		t.Errorf("an open loop of 100 requests has %d", w.Requests())
	}
}

const mooncakeText = `{"timestamp": 0, "input_length": 1100, "output_length": 50, "hash_ids": [0, 1, 2]}
{"timestamp": 500, "input_length": 1500, "output_length": 60, "hash_ids": [0, 1, 9]}

{"timestamp": 2000, "input_length": 600, "output_length": 0, "hash_ids": [7, 8]}
`

func TestMooncake(t *testing.T) {
	w := open1(t, file(t, "m.jsonl", mooncakeText), Options{})
	if len(w.Sessions) != 3 || w.Closed || w.Sessions[1].Start != 500*time.Millisecond || w.Name != "m.jsonl" {
		t.Fatalf("read %+v", w)
	}
	if s := w.Sessions; s[0].Conversation == 0 || s[0].Conversation != s[1].Conversation || s[1].Conversation == s[2].Conversation {
		t.Errorf("the conversations are %d, %d and %d; who shares a second block goes on with another", s[0].Conversation, s[1].Conversation, s[2].Conversation)
	}
	if n := shared(chains(w, 0), chains(w, 1)); n != 64 {
		t.Errorf("the first two share %d blocks of 16, want the 64 of two hash ids", n)
	}
	if n := shared(chains(w, 0), chains(w, 2)); n != 0 {
		t.Errorf("the first and third share %d blocks", n)
	}
	if turn := w.Sessions[2].Turns[0]; turn.Prompt != 600 || turn.Output != 1 {
		t.Errorf("the third is %+v, want 600 tokens, and one for an answer of none", turn)
	}
	if w := open1(t, file(t, "m.jsonl", mooncakeText), Options{Requests: 2}); len(w.Sessions) != 2 {
		t.Errorf("%d requests of 2 that were asked for", len(w.Sessions))
	}
}

// A system prompt of several blocks makes no conversation of all requests.
func TestMooncakeConversationsBeginBehindWhatAllShare(t *testing.T) {
	for _, c := range []struct {
		name   string
		shared string // behind the first block
	}{
		{"a block that all share", ""}, {"three more", " 1, 2, 3,"},
	} {
		var b strings.Builder
		for i := range 400 {
			// Two requests each, and each with an end of its own.
			fmt.Fprintf(&b, "{\"timestamp\": %d, \"input_length\": 4000, \"output_length\": 9, \"hash_ids\": [0,%s %d, %d]}\n", i, c.shared, 1000+i/2, 2000+i)
		}
		// Who asks nothing of his own is in no conversation with the others.
		fmt.Fprintf(&b, "{\"timestamp\": 400, \"input_length\": 4000, \"output_length\": 9, \"hash_ids\": [0%s]}\n", strings.TrimSuffix(","+c.shared, ","))
		w := open1(t, file(t, "m.jsonl", b.String()), Options{})
		for i := range 400 {
			if got, want := w.Sessions[i].Conversation, 1+i/2; got != want {
				t.Fatalf("%s: request %d is of conversation %d, want %d", c.name, i, got, want)
			}
		}
		if n := w.Sessions[400].Conversation; n != 0 {
			t.Errorf("%s: who has only what all share is of conversation %d", c.name, n)
		}
	}
}

func TestPlainTraces(t *testing.T) {
	w := open1(t, file(t, "p.jsonl", `{"at_s":1,"session":"a","prompt":[{"id":"sys","tokens":320},{"id":"q1","tokens":32,"bytes":100}],"output_tokens":16,"answer":"r1"}
{"at_s":2,"prompt":[{"id":"sys","tokens":320},{"id":"q9","tokens":48}],"output_tokens":5}
{"at_s":4,"session":"a","prompt":[{"id":"sys","tokens":320},{"id":"q1","tokens":32,"bytes":100},{"id":"r1","tokens":16},{"id":"q2","tokens":64}],"output_tokens":9}
`), Options{})
	if len(w.Sessions) != 2 || len(w.Sessions[0].Turns) != 2 || w.Sessions[0].Turns[1].Gap != 3*time.Second {
		t.Fatalf("read %+v", w)
	}
	first, later := w.Sessions[0].Turns[0], w.Sessions[0].Turns[1]
	if n := shared(first.Content.Tokens(16), later.Content.Tokens(16)); n != 23 {
		t.Errorf("the second turn shares %d blocks with the first and its answer, want 23", n)
	}
	if first.Prompt != 352 || later.Prompt != 432 || later.Output != 9 {
		t.Errorf("turns are %+v and %+v", first, later)
	}
}

func TestAzure(t *testing.T) {
	text := "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:05.0319600,3180,8\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	w := open1(t, file(t, "a.csv.gz", packed.String()), Options{})
	if len(w.Sessions) != 2 || w.Sessions[1].Start != 1052*time.Millisecond || w.Sessions[1].Turns[0].Prompt != 3180 {
		t.Errorf("read %+v", w)
	}
}

// Clients who play the same conversation share what others begin with too, and
// not each other's words.
func TestTextIsSharedAsFarAsItIsCommon(t *testing.T) {
	system := strings.Repeat("Be brief. ", 200)
	one := func(id, user string) string {
		return `{"id":"` + id + `","messages":[{"role":"system","content":"` + system + `"},{"role":"user","content":"` +
			strings.Repeat(user, 300) + `"},{"role":"assistant","content":"` + strings.Repeat("Yes. ", 100) + `"},{"role":"user","content":"And?"}]}` + "\n"
	}
	w := open1(t, file(t, "t.jsonl", one("a", "apples ")+one("b", "pears ")), Options{Requests: 40, Seed: 1})
	if !w.Closed || w.Requests() < 40 {
		t.Fatalf("%d requests", w.Requests())
	}
	common := int(float64(len(system)) / bytesPerToken / 16) // blocks, give or take a fifth
	for i := 1; i < len(w.Sessions); i++ {
		a, b := chains(w, 0), chains(w, i)
		if n := shared(a, b); n < common*7/10 || n > common*13/10 || n == len(a) {
			t.Fatalf("sessions 0 and %d share %d blocks of %d, want about %d", i, n, len(a), common)
		}
		for _, s := range w.Sessions[i].Turns[1:] {
			if s.Gap <= 0 {
				t.Error("a later turn comes at once")
			}
		}
	}
	if u := w.Sessions[0].Turns[0].Content.UserKey(100); u == w.Sessions[1].Turns[0].Content.UserKey(100) {
		t.Error("two clients have the same words")
	}
}

// Agents that send the whole dialogue in one message share it with themselves.
func TestWholePromptsShareTheirBeginning(t *testing.T) {
	text := strings.Repeat("The task is to mend the roof of the house. ", 60)
	one := func(turn, input string) string {
		return `{"session":"s","turn":` + turn + `,"timestamp":1,"input":"` + input + `","output":"ok"}` + "\n"
	}
	w := open1(t, file(t, "l.jsonl", one("0", text)+one("1", text+strings.Repeat("Next. ", 100))), Options{Requests: 2, Seed: 1})
	turns := w.Sessions[0].Turns
	if len(turns) != 2 || turns[0].Content == turns[1].Content {
		t.Fatalf("read %+v", turns)
	}
	if n, all := shared(turns[0].Content.Tokens(16), turns[1].Content.Tokens(16)), turns[0].Prompt/16; n < all*8/10 {
		t.Errorf("the second prompt shares %d of the first's %d blocks", n, all)
	}
}

func TestBadNamesAndFiles(t *testing.T) {
	for _, name := range []string{
		"", "nothing", "tenants:prompts", "tenants:prompts=x", "tenants:prompts=-1", "tenants:colour=3", "./missing.jsonl",
		file(t, "a", "TIMESTAMP,ContextTokens\nx,1\n"),
		file(t, "b", `{"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [1,2,3]}`),
		file(t, "c", `{"timestamp": -5, "input_length": 5, "output_length": 5, "hash_ids": [1]}`),
		file(t, "d", `{"prompt":[],"output_tokens":1}`),
		file(t, "e", `{"prompt":[{"id":"x","tokens":0}],"output_tokens":1}`),
		file(t, "f", `{"prompt":[{"id":"x","tokens":5}],"output_tokens":0}`),
		file(t, "g", `{"at_s":1e300,"prompt":[{"id":"x","tokens":5}],"output_tokens":1}`),
		file(t, "h", "\x1f\x8bnot gzip"),
		file(t, "i", ""),
	} {
		if w, err := Open(name, Options{}); err == nil {
			t.Errorf("%q is read: %d requests", name, w.Requests())
		}
	}
	if _, err := Open("hot", Options{Requests: MaxRequests + 1}); err == nil {
		t.Error("there is no bound of requests")
	}
}

// Whatever a file holds, what is read can be replayed.
func FuzzRead(f *testing.F) {
	f.Add([]byte(mooncakeText))
	f.Add([]byte(`{"at_s":1,"session":"a","prompt":[{"id":"s","tokens":3}],"output_tokens":1,"answer":"r"}`))
	f.Add([]byte("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,4808,10\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := new(Files).read(bytes.NewReader(data), "none", "", Options{Requests: 50})
		if err != nil {
			return
		}
		for _, s := range w.Sessions {
			if s.Start < 0 || len(s.Turns) == 0 {
				t.Fatalf("session %+v", s)
			}
			for _, turn := range s.Turns {
				if turn.Prompt < 1 || turn.Prompt > maxPrompt || turn.Output < 1 || turn.Gap < 0 {
					t.Fatalf("turn %+v", turn)
				}
				if turn.Prompt < 1<<16 && len(turn.Content.Tokens(16)) < turn.Prompt/16 {
					t.Fatal("the chain is shorter than the prompt")
				}
			}
		}
	})
}

func TestParametersAreListed(t *testing.T) {
	for _, g := range Generators() {
		if g.About == "" || !strings.Contains(g.Usage(), "=") || !slices.Contains(generatorNames(), g.Name) {
			t.Errorf("generator %q says %q, %q", g.Name, g.About, g.Usage())
		}
	}
}

// Equal blocks have equal numbers, in any content, and the numbers have no gaps.
func TestNumbersAreThoseOfHashes(t *testing.T) {
	w, err := Open("tenants:prompts=5", Options{Requests: 40, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	numberOf, highest, blocks := make(map[uint64]int32), int32(-1), 0
	for i := range w.Sessions {
		c := w.Sessions[i].Turns[0].Content
		hashes, numbers := c.Bytes(256), w.ByteNumbers(c, 256)
		if len(hashes) != len(numbers) {
			t.Fatalf("%d numbers for %d blocks", len(numbers), len(hashes))
		}
		for j, h := range hashes {
			if known, ok := numberOf[h]; ok && known != numbers[j] {
				t.Fatalf("a block has the numbers %d and %d", known, numbers[j])
			}
			numberOf[h] = numbers[j]
			highest = max(highest, numbers[j])
			blocks++
		}
		if tokens := w.TokenNumbers(c, 64); len(tokens) != len(c.Tokens(64)) {
			t.Fatalf("%d numbers for %d blocks of tokens", len(tokens), len(c.Tokens(64)))
		}
	}
	if int(highest) != len(numberOf)-1 || len(numberOf) == blocks {
		t.Errorf("numbers go up to %d for %d blocks that differ, of %d", highest, len(numberOf), blocks)
	}
}

// A file that was read before gives what it gave then.
func TestFilesGiveWhatOpenGives(t *testing.T) {
	talk := func(id string) string {
		return `{"id":"` + id + `","messages":[{"role":"user","content":"` + strings.Repeat("pears ", 200) + id +
			`"},{"role":"assistant","content":"Yes."},{"role":"user","content":"And?"}]}` + "\n"
	}
	name := file(t, "talk.jsonl", talk("a")+talk("b")) + ":think=1"
	var files Files
	for seed := range uint64(3) {
		o := Options{Requests: 30, Seed: seed, Rate: 5}
		got, err := files.Open(name, o)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, open1(t, name, o)) {
			t.Errorf("seed %d: opened again it differs", seed)
		}
	}
	if len(files.scripts) != 1 {
		t.Errorf("%d files are kept, want 1", len(files.scripts))
	}
}
