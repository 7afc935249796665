package prompt

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/caddyllm/caddy-llm-prefix/caddyllm/internal/prefix"
)

// node is a JSON value as encoding/json reads it, with all members of an
// object in order, duplicates included.
type node struct {
	kind    byte // one of { [ " and 0 for scalars
	text    string
	raw     string
	keys    []string
	members []*node
}

// tree reads a whole body with encoding/json.
func tree(body []byte) (*node, bool) {
	if !json.Valid(body) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	n, err := branch(d, body)
	if err != nil {
		return nil, false
	}
	_, err = d.Token()
	return n, err == io.EOF
}

func branch(d *json.Decoder, body []byte) (*node, error) {
	from := int(d.InputOffset())
	from += len(body[from:]) - len(bytes.TrimLeft(body[from:], " \n\t\r,:"))
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := &node{}
	switch v := token.(type) {
	case json.Delim:
		n.kind = byte(v)
		for d.More() {
			if n.kind == '{' {
				key, err := d.Token()
				if err != nil {
					return nil, err
				}
				n.keys = append(n.keys, key.(string))
			}
			m, err := branch(d, body)
			if err != nil {
				return nil, err
			}
			n.members = append(n.members, m)
		}
		if _, err := d.Token(); err != nil {
			return nil, err
		}
	case string:
		n.kind, n.text = '"', v
	}
	n.raw = string(body[from:d.InputOffset()])
	return n, nil
}

// unique are the places of an object's members, of duplicates the first place
// with the last value, as in a dict of Python.
func (n *node) unique() (keys []string, members []*node) {
	for i, key := range n.keys {
		if at := slices.Index(keys, key); at >= 0 {
			members[at] = n.members[i]
			continue
		}
		keys, members = append(keys, key), append(members, n.members[i])
	}
	return keys, members
}

func (n *node) is(kind byte) bool { return n != nil && n.kind == kind }
func (n *node) present() bool     { return n != nil && n.raw != "null" }

// fieldsOf is an object's members by field, the last of duplicates.
func fieldsOf[F ~uint8](n *node, of func([]byte) F) map[F]*node {
	m := map[F]*node{}
	for i, key := range n.keys {
		if f := of([]byte(key)); f != 0 {
			m[f] = n.members[i]
		}
	}
	return m
}

// twin makes the canonical stream the plain way: from a tree, into one buffer.
type twin struct {
	out     bytes.Buffer
	others  int
	extra   int
	prompts int
	found   bool
	kind    Kind
}

func (w *twin) mark(letter byte) { w.out.Write([]byte{'"', letter}) }

// text writes text with the shortest escapes and no others.
func (w *twin) text(text string) { w.out.WriteString(shortestForm(text)) }

func shortestForm(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case strings.IndexByte("\"\\\n\t\r\b\f", c) >= 0:
			b.WriteByte('\\')
			b.WriteByte("\"\\ntrbf"[strings.IndexByte("\"\\\n\t\r\b\f", c)])
		case c < ' ':
			fmt.Fprintf(&b, "\\u%04x", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (w *twin) value(n *node) {
	switch n.kind {
	case '"':
		w.mark('"')
		w.text(n.text)
	case '{':
		w.mark('{')
		keys, members := n.unique()
		for i, m := range members {
			w.mark('"')
			w.text(keys[i])
			w.value(m)
		}
		w.mark('}')
	case '[':
		w.mark('[')
		for _, m := range n.members {
			w.value(m)
		}
		w.mark(']')
	default:
		w.mark('0')
		w.out.WriteString(n.raw)
	}
}

func (w *twin) labelled(letter byte, n *node) {
	if n.present() {
		w.mark(letter)
		w.value(n)
	}
}

func (w *twin) reading(letter byte, n *node) {
	w.labelled(letter, n)
	w.found = w.found || n.present()
}

func (w *twin) options(f map[field]*node) {
	for _, option := range options {
		n := f[option]
		if !n.present() {
			continue
		}
		w.mark('k')
		w.mark('0' + byte(option))
		if n.is('{') && len(n.members) <= maxUnordered {
			sum := uint64(0)
			keys, members := n.unique()
			for i, m := range members {
				var alone twin
				alone.mark('"')
				alone.text(keys[i])
				alone.value(m)
				sum += xxhash.Sum64(alone.out.Bytes())
			}
			w.mark('+')
			w.out.Write(binary.BigEndian.AppendUint64(nil, sum))
			continue
		}
		w.value(n)
	}
}

func (w *twin) tools(n *node) {
	if !n.is('[') {
		w.value(n)
		return
	}
	for _, tool := range n.members {
		w.tool(tool, false)
	}
}

func (w *twin) tool(n *node, inner bool) {
	if !n.is('{') {
		w.value(n)
		return
	}
	f := fieldsOf(n, toolFieldOf)
	if !inner && !f[tFunction].present() && !f[tName].present() {
		w.value(n)
		return
	}
	w.mark('{')
	for _, t := range []toolField{tType, tName, tDescription, tParameters, tStrict, tDefer} {
		if f[t].present() {
			w.mark('t')
			w.mark('0' + byte(t))
			w.value(f[t])
		}
	}
	if !inner && f[tFunction].present() {
		w.mark('t')
		w.mark('0' + byte(tFunction))
		w.tool(f[tFunction], true)
	}
	w.mark('}')
}

func (w *twin) chat(f map[field]*node) {
	w.options(f)
	for _, tools := range []*node{f[fTools], f[fFunctions]} {
		if tools.is('[') && len(tools.members) > 0 {
			w.mark('T')
			w.tools(tools)
		}
	}
	for _, system := range []*node{f[fSystem], f[fInstructions]} {
		if system.is('"') || system.is('[') {
			w.message(&node{kind: '{', keys: []string{"role", "content"}, members: []*node{{kind: '"', text: "system"}, system}})
		}
	}
	all := f[fMessages]
	if !all.is('[') || len(all.members) == 0 || !all.members[0].is('[') {
		w.messages(all)
		return
	}
	w.each(all.members, w.messages)
}

// each feeds the prompts of a batch: the first counts whole, of the others the
// length.
func (w *twin) each(prompts []*node, one func(*node)) {
	length := 0
	for i, m := range prompts {
		one(m)
		if i == 0 {
			length = w.out.Len()
		}
	}
	if len(prompts) > 0 {
		w.others += w.out.Len() - length
		w.out.Truncate(length)
	}
	w.prompts = max(w.prompts, len(prompts))
}

func (w *twin) messages(n *node) {
	if n.is('[') {
		for _, m := range n.members {
			w.message(m)
		}
	}
}

func (w *twin) message(n *node) {
	if !n.is('{') {
		return
	}
	f := fieldsOf(n, messageFieldOf)
	w.mark('M')
	w.labelled('r', f[mRole])
	w.labelled('n', f[mName])
	w.labelled('d', f[mCallID])
	w.reading('h', f[mReasoning])
	if f[mSummary].present() {
		w.mark('s')
		w.content(f[mSummary], 0)
	}
	w.reading('h', f[mEncrypted])
	w.content(f[mContent], 0)
	w.reading('f', f[mRefusal])
	if f[mToolCalls].is('[') {
		for _, c := range f[mToolCalls].members {
			w.call(c)
		}
	}
	w.call(f[mFunction])
	w.reading('g', f[mArguments])
	if f[mOutput].present() {
		w.mark('o')
		w.content(f[mOutput], 0)
	}
	if f[mTools].present() {
		w.mark('T')
		w.tools(f[mTools])
	}
	empty := true
	for m := mContent; m <= mTools; m++ {
		empty = empty && !f[m].present()
	}
	if empty && f[mType].present() {
		w.reading('x', n)
	}
}

func (w *twin) call(n *node) {
	if !n.is('{') {
		return
	}
	f := fieldsOf(n, messageFieldOf)
	w.mark('u')
	w.labelled('d', f[mID])
	if f[mFunction].is('{') {
		for k, v := range fieldsOf(f[mFunction], messageFieldOf) {
			f[k] = v
		}
	}
	w.labelled('n', f[mName])
	w.reading('g', f[mArguments])
	w.found = true
}

func (w *twin) content(n *node, nesting int) {
	switch {
	case n.is('"'):
		w.words(n, false)
	case n.is('['):
		joined := false
		for _, p := range n.members {
			joined = w.part(p, joined, nesting)
		}
	default:
		w.labelled('x', n)
	}
}

func (w *twin) words(n *node, joined bool) bool {
	if joined {
		w.out.WriteString(`\n`)
	} else {
		w.mark('c')
	}
	w.text(n.text)
	w.found = w.found || n.text != ""
	return true
}

func (w *twin) part(n *node, joined bool, nesting int) bool {
	if n.is('"') {
		return w.words(n, joined)
	}
	if !n.is('{') {
		w.labelled('x', n)
		return false
	}
	f := fieldsOf(n, partFieldOf)
	switch {
	case f[pText].is('"'):
		return w.words(f[pText], joined)
	case f[pThinking].is('"'):
		w.reading('h', f[pThinking])
	case f[pContent].present() && nesting < 4:
		w.mark('o')
		w.labelled('d', f[pID])
		w.content(f[pContent], nesting+1)
	case f[pInput].present():
		w.mark('u')
		w.labelled('d', f[pID])
		w.labelled('n', f[pName])
		w.reading('g', f[pInput])
	case f[pImage].present():
		w.media('i', f[pImage], f[pUUID])
	case f[pAudio].present():
		w.media('a', f[pAudio], f[pUUID])
	case f[pVideo].present():
		w.media('v', f[pVideo], f[pUUID])
	case f[pFile].present():
		w.media('F', f[pFile], f[pUUID])
	default:
		w.reading('x', n)
	}
	return false
}

func (w *twin) media(letter byte, n, id *node) {
	payload := n
	if id.is('"') && id.text != "" {
		payload = id
	}
	if payload.is('{') {
		for i, key := range payload.keys {
			switch key {
			case "url", "data", "file_data", "file_id", "file_url":
				if n.members[i].is('"') {
					payload = n.members[i]
				}
			}
		}
	}
	head := ""
	if payload.is('"') {
		head = payload.text[:min(len(payload.text), mediaHead)]
	}
	w.extra += mediaTokens(letter, []byte(head), len(payload.raw)-2)
	var alone twin
	alone.value(payload)
	w.mark(letter)
	w.out.Write(binary.BigEndian.AppendUint64(nil, xxhash.Sum64(alone.out.Bytes())))
	w.found = true
}

func (w *twin) batch(n *node) {
	if !n.is('[') || len(n.members) > 0 && strings.ContainsAny(n.members[0].raw[:1], "-0123456789") {
		w.single(n)
		return
	}
	w.each(n.members, w.single)
}

func (w *twin) single(n *node) {
	switch {
	case n.is('"'):
		w.mark('p')
		w.text(n.text)
		w.found = w.found || n.text != ""
	case n.is('{'):
		w.reading('p', n)
	case n.is('['):
		w.mark('#')
		for _, m := range n.members {
			if id, err := strconv.ParseUint(m.raw, 10, 31); err == nil && id <= idMax {
				w.out.Write(binary.BigEndian.AppendUint32(nil, uint32(id)))
			} else {
				w.mark('x')
				w.out.Write(binary.BigEndian.AppendUint64(nil, xxhash.Sum64String(m.raw)))
			}
			w.found = true
		}
	}
}

func (w *twin) prompt(kind Kind, f map[field]*node) {
	w.prompts = 1
	if kind == Invocations {
		switch {
		case f[fMessages].present():
			kind = Chat
		case f[fPrompt].present() || f[fEmbeds].present():
			kind = Completions
		case f[fInput].present():
			kind = Embeddings
		case f[fQuery].present():
			kind = Score
		default:
			kind = None
		}
	}
	w.kind = kind
	switch kind {
	case Chat, Messages:
		w.chat(f)
	case Responses:
		w.chat(f)
		if input := f[fInput]; input.is('"') {
			w.message(&node{kind: '{', keys: []string{"role", "content"}, members: []*node{{kind: '"', text: "user"}, input}})
		} else {
			w.messages(input)
		}
	case Completions:
		w.options(f)
		w.batch(f[fPrompt])
		if e := f[fEmbeds]; e.present() {
			var alone twin
			alone.value(e)
			w.mark('e')
			w.out.Write(binary.BigEndian.AppendUint64(nil, xxhash.Sum64(alone.out.Bytes())))
			w.extra += len(e.raw) / embedBytes
			w.found = true
		}
	case Rerank, Score:
		if f[fQuery] != nil {
			w.mark('q')
			w.batch(f[fQuery])
			w.batch(f[fDocuments])
		}
	case Embeddings, Classify, Tokenize, Generate:
		if f[fMessages].is('[') {
			w.chat(f)
			return
		}
		w.options(f)
		images := []*node{f[fImages]}
		if f[fImages].is('[') {
			images = f[fImages].members
		}
		for _, n := range images {
			if n.present() {
				w.media('i', n, nil)
			}
		}
		pictured := w.found
		w.found = false
		for _, from := range []field{fPrompt, fInput, fInputIDs} {
			if !w.found {
				w.batch(f[from])
			}
		}
		w.found = w.found || pictured
	}
}

// expect is what Scan should say of a body, by way of the twin.
func expect(kind Kind, root *node, block int) (Prompt, Status) {
	f := fieldsOf(root, topField)
	var w twin
	w.prompt(kind, f)
	if !w.found {
		return Prompt{}, NoPrompt
	}
	whole := func(n *node) int {
		if n == nil {
			return 0
		}
		i, err := strconv.ParseUint(n.raw, 10, 31)
		if err != nil {
			return 0
		}
		return int(i)
	}
	number := func(from field) int {
		n := whole(f[from])
		if v := f[fSampling]; n == 0 && v.is('{') {
			for i, key := range v.keys {
				if topField([]byte(key)) == from {
					n = whole(v.members[i])
				}
			}
		}
		return n
	}
	p := Prompt{Bytes: w.out.Len() + w.others, ExtraTokens: w.extra, Kind: w.kind}
	for from, to := range map[field]*uint64{fSession: &p.Session, fPrevious: &p.Previous} {
		if n := f[from]; n.is('"') && n.text != "" {
			*to = xxhash.Sum64String(shortestForm(n.text))
		}
	}
	for _, m := range []field{fMaxNewTokens, fMaxTokens, fMaxOutputTokens, fMaxCompletionTokens} {
		if n := number(m); n > 0 {
			p.MaxTokens = n
		}
	}
	p.N = min(max(1, number(fN))*w.prompts, math.MaxInt32)
	p.Stream = f[fStream] != nil && f[fStream].raw == "true"
	if o := f[fStreamOptions]; o.is('{') {
		for i, key := range o.keys {
			if key == "include_usage" {
				p.IncludeUsage = o.members[i].raw == "true"
			}
		}
	}
	seed := uint64(0)
	if m := f[fModel]; m.is('"') && m.text != "" {
		p.ModelName, p.Model = []byte(m.text), xxhash.Sum64String(m.text)
		seed = p.Model
	}
	if salt := f[fCacheSalt]; salt.is('"') && salt.text != "" {
		p.SaltPresent = true
		seed = seed*0x9e3779b97f4a7c15 ^ xxhash.Sum64String(shortestForm(salt.text))
	}
	var c prefix.Chain
	c.Reset(nil, block)
	c.Write(w.out.Bytes())
	p.Whole = c.Whole(seed)
	p.Chain = c.Seal(seed)
	return p, OK
}

// likeness reports whether both read the body's text the same way:
// encoding/json replaces invalid UTF-8 and lone surrogates, which Python
// refuses and keeps; the scanner gives up nesting earlier; and the twin knows
// nothing of the billing line.
func likeness(body []byte, n *node, depth int) bool {
	if depth == 0 && !utf8.Valid(body) || depth >= maxDepth {
		return false
	}
	for _, text := range append([]string{n.text}, n.keys...) {
		if strings.ContainsRune(text, utf8.RuneError) || strings.HasPrefix(text, string(billing)) {
			return false
		}
	}
	for _, m := range n.members {
		if !likeness(body, m, depth+1) {
			return false
		}
	}
	return true
}

func samePrompt(a, b Prompt) bool {
	if len(a.Chain) != len(b.Chain) || shared(a.Chain, b.Chain) != len(a.Chain) || !bytes.Equal(a.ModelName, b.ModelName) {
		return false
	}
	return a.Whole == b.Whole && a.Bytes == b.Bytes && a.ExtraTokens == b.ExtraTokens && a.Model == b.Model && a.MaxTokens == b.MaxTokens &&
		a.Kind == b.Kind && a.Session == b.Session && a.Previous == b.Previous &&
		a.N == b.N && a.Stream == b.Stream && a.IncludeUsage == b.IncludeUsage && a.SaltPresent == b.SaltPresent
}

// compare checks one body against the twin, and its heads against each other.
func compare(t *testing.T, s *Scanner, kind Kind, body []byte) {
	got, status := s.Scan(kind, body, true, block)
	got.Chain = append([]uint64(nil), got.Chain...)
	root, ok := tree(body)
	if ok && likeness(body, root, 0) {
		if root.kind != '{' {
			if status != Broken {
				t.Fatalf("Scan(%v, %q) = status %d, want Broken", kind, body, status)
			}
		} else if want, wantStatus := expect(kind, root, block); status != wantStatus || !samePrompt(got, want) {
			t.Fatalf("Scan(%v, %q) = %+v, status %d; the twin has %+v, status %d", kind, body, got, status, want, wantStatus)
		}
	}
	if status == OK {
		var fresh Scanner
		if again, _ := fresh.Scan(kind, body, true, block); !samePrompt(again, got) {
			t.Fatalf("Scan(%v, %q) = %+v in a used scanner, %+v in a fresh one", kind, body, got, again)
		}
	}
	// A head is read where it stands last; of a body that is wrong in a value
	// overridden later only the head shows it.
	head := body[:len(body)*2/3]
	if _, headStatus := s.Scan(kind, head, false, block); ok && headStatus == Broken && status != Broken {
		t.Fatalf("Scan(%v, %q) is broken, a head of a good body", kind, head)
	}
}

var seeds = []string{
	`{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
	`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"data:image\/png;base64,AAAA","detail":"low"}}]}],"cache_salt":"s","stream":true,"stream_options":{"include_usage":true}}`,
	`{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"number","maximum":1.5e3}}}}}],"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]},{"role":"tool","tool_call_id":"c","content":"\u00e9\ud83d\ude00\n"}],"n":3}`,
	`{"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r"},{"type":"image","source":{"type":"base64","data":"AA"}}]}]},{"role":"assistant","content":[{"type":"thinking","thinking":"h"},{"type":"tool_use","id":"t","name":"n","input":{"a":[1,true,null]}}]}]}`,
	`{"instructions":"i","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"o"},{"type":"reasoning","summary":[{"text":"s"}]}],"reasoning":{"effort":"low"},"previous_response_id":"r"}`,
	`{"prompt":["a","b","c"],"max_tokens":5}`, `{"prompt":[[1,2],[3]]}`, `{"prompt":[1, 2 ,3,-1,1.5,2147483648,{"a" : 1}]}`, `{"input":"x","query":"q","documents":["d",{"text":"e"}],"text":"t"}`,
	`{"messages":[null,1,"x",{}],"messages":[{"content":{"a":[]}}]}`, `{"a":[[[{}]]],"messages":"x"}`, `[]`, `nul`, `{"messages":[{"content":"\ud800x"}]}`, "\xef\xbb\xbf{}", `{"messages":[{"content":NaN}]}`,
	`{"tools":[{"function":{"parameters":{"a":1,"b":{"x":1,"x":2},"a":3,"\u0061":4},"name":"f","x":1},"type":"function"},{"type":"web_search"},7],"chat_template_kwargs":{"b":[1],"a":{"c":1},"b":2},"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"k":1,"k":2}}]},{"type":"item_reference","id":"m"}]}`,
	`{"messages":[[{"role":"user","content":"a"}],[{"role":"user","content":"b"}],"x"],"session_id":"s"}`,
	`{"text":"t","image_data":["iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB",{"url":"x"}],"sampling_params":{"max_new_tokens":9,"n":2},"input_ids":[1]}`,
	`{"prompt_embeds":"AAAA","add_special_tokens":false}`, `{"token_ids":[1,2],"features":{"mm_hashes":{"image":["h"]}},"sampling_params":{"max_tokens":3}}`,
	`{"texts":["a","b"],"images":["data:image/png;base64,AA"]}`,
	`{"messages":[{"role":"user","content":[{"content":[{"content":[{"content":[{"content":[{"content":"deep"}]}]}]}]}]}]}`,
}

func FuzzScanAgreesWithItsTwin(f *testing.F) {
	for _, seed := range seeds {
		for kind := None; kind <= Audio; kind++ {
			f.Add(byte(kind), []byte(seed))
		}
	}
	var s Scanner
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		compare(t, &s, Kind(kind%byte(Audio+1)), body)
	})
}
