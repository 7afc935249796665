package prompt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

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
	case '{', '[':
		w.compact(n)
	default:
		w.mark('0')
		w.out.WriteString(n.raw)
	}
}

// compact writes JSON without white space.
func (w *twin) compact(n *node) {
	switch n.kind {
	case '"':
		w.out.WriteByte('"')
		w.text(n.text)
		w.out.WriteByte('"')
	case '{':
		keys, members := n.unique()
		for i, m := range members {
			w.out.WriteByte("{,"[min(i, 1)])
			w.compact(&node{kind: '"', text: keys[i]})
			w.out.WriteByte(':')
			w.compact(m)
		}
		if len(members) == 0 {
			w.out.WriteByte('{')
		}
		w.out.WriteByte('}')
	case '[':
		w.out.WriteByte('[')
		for i, m := range n.members {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.compact(m)
		}
		w.out.WriteByte(']')
	default:
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
		if !n.tells() {
			continue
		}
		if (option == fReasoning || option == fThinking || option == fOutputConfig) && n.is('{') {
			for i, name := range efforts {
				var said *node
				for k, key := range n.keys {
					if key == name {
						said = n.members[k]
					}
				}
				if said.says() {
					w.mark('k')
					w.mark('0' + byte(option))
					w.mark('0' + byte(i))
					w.value(said)
				}
			}
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

func (w *twin) chat(f map[field]*node) {
	w.options(f)
	for _, tools := range []*node{f[fTools], f[fFunctions]} {
		if tools.is('[') && len(tools.members) > 0 {
			w.mark('T')
			w.tools(tools, 0)
		}
	}
	for _, system := range []*node{f[fSystem], f[fInstructions]} {
		if system.is('"') && system.text != "" || system.is('[') && len(system.members) > 0 {
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
	w.labelled('N', f[mNamespace])
	w.reading('h', f[mReasoning])
	if f[mSummary].present() {
		w.mark('s')
		w.content(f[mSummary], 0)
	}
	w.reading('h', f[mEncrypted])
	w.content(f[mContent], 0)
	w.labelled('C', f[mCitations])
	w.images(f[mImages])
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
		w.tools(f[mTools], 0)
	}
	empty := true
	for m := mContent; m <= mTools; m++ {
		if f[mRole].says() {
			empty = empty && !f[m].present()
		} else {
			empty = empty && !f[m].tells()
		}
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
	w.labelled('N', f[mNamespace])
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
		if n.is('{') {
			f := fieldsOf(n, partFieldOf)
			if kind := f[pType]; kind.is('"') && kind.text == "computer_screenshot" && w.picture(f) {
				return
			}
		}
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
	kind := ""
	if f[pType].is('"') {
		kind = f[pType].text
	}
	if text := f[pText]; text.is('"') {
		ofText := slices.Contains([]string{"", "text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal"}, kind)
		seen := holds(f[pImage]) || holds(f[pAudio]) || holds(f[pVideo])
		only := !seen && !(f[pEmbeds].says() || f[pThinking].says() || f[pContent].tells() || f[pInput].tells() || holds(f[pFile]))
		switch {
		case text.text != "" && (only || ofText && !seen), only && ofText:
			return w.words(text, joined)
		case text.text != "":
			w.words(text, joined)
		}
	}
	switch {
	case f[pEmbeds].says():
		w.embeds(f[pEmbeds])
	case f[pThinking].is('"') && f[pThinking].says():
		w.reading('h', f[pThinking])
	case kind == "tool_result" && !f[pContent].tells():
		w.mark('o')
		w.labelled('d', f[pID])
		w.found = true
	case f[pContent].tells() && kind == "search_result":
		w.unknown(n)
	case f[pContent].tells() && nesting < 4:
		w.mark('o')
		w.labelled('d', f[pID])
		w.content(f[pContent], nesting+1)
	case f[pInput].tells():
		w.use(f)
	case w.picture(f):
	case f[pInput].says() && f[pName].says():
		w.use(f)
	default:
		w.unknown(n)
	}
	return false
}

func (w *twin) unknown(n *node) {
	shown := &node{kind: '{'}
	keys, members := n.unique()
	for i, m := range members {
		if keys[i] != "cache_control" {
			shown.keys, shown.members = append(shown.keys, keys[i]), append(shown.members, m)
		}
	}
	w.reading('x', shown)
}

func (w *twin) use(f map[partField]*node) {
	w.mark('u')
	w.labelled('d', f[pID])
	w.labelled('n', f[pName])
	w.reading('g', f[pInput])
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
		f := fieldsOf(n, partFieldOf)
		switch c := f[pContent]; {
		case (c.is('"') || c.is('[')) && c.tells():
			w.mark('p')
			w.content(c, 0)
		case !f[pText].says() && w.picture(f):
		default:
			w.reading('p', n)
		}
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
		case f[fMessages].tells():
			kind = Chat
		case f[fPrompt].tells() || f[fEmbeds].tells():
			kind = Completions
		case f[fInput].tells():
			kind = Embeddings
		case f[fQuery].tells():
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
		if f[fPreviousInput].is('[') {
			for _, m := range f[fPreviousInput].members {
				w.reading('M', m)
			}
		}
		if input := f[fInput]; input.is('"') {
			w.message(&node{kind: '{', keys: []string{"role", "content"}, members: []*node{{kind: '"', text: "user"}, input}})
		} else {
			w.messages(input)
		}
	case Completions:
		w.options(f)
		w.batch(f[fPrefix])
		w.batch(f[fPrompt])
		w.embeds(f[fEmbeds])
	case Root:
		w.options(f)
		w.batch(f[fPrompt])
	case Rerank, Score:
		if f[fQuery] != nil {
			w.mark('q')
			w.batch(f[fQuery])
			w.batch(f[fDocuments])
			w.batch(f[fPrompt])
		}
	case Embeddings, Classify, Tokenize, Generate:
		if f[fMessages].is('[') && len(f[fMessages].members) > 0 {
			w.chat(f)
			return
		}
		w.options(f)
		if system := f[fSystem]; system.is('"') && system.text != "" {
			w.message(&node{kind: '{', keys: []string{"role", "content"}, members: []*node{{kind: '"', text: "system"}, system}})
		}
		w.images(f[fImages])
		w.attachments('a', f[fAudios])
		w.attachments('v', f[fVideos])
		if f[fContext].is('[') && len(f[fContext].members) > 0 {
			w.single(f[fContext])
		}
		pictured := w.found
		w.found = false
		for _, from := range []field{fPrompt, fInput, fContent, fInputIDs} {
			if !w.found && f[from].tells() {
				w.batch(f[from])
			}
		}
		w.found = w.found || pictured
	}
}
