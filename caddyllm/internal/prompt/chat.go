package prompt

import (
	"bytes"
	"slices"
)

// Letters of marks. Each stands before what it names.
const (
	lOption    = 'k' // what the template is told apart from messages
	lTools     = 'T'
	lMessage   = 'M'
	lRole      = 'r'
	lName      = 'n'
	lNamespace = 'N'
	lID        = 'd'
	lReasoning = 'h'
	lSummary   = 's'
	lContent   = 'c'
	lCitations = 'C'
	lRefusal   = 'f'
	lCall      = 'u'
	lArguments = 'g'
	lOutput    = 'o'
	lUnknown   = 'x'
	lString    = '"'
	lScalar    = '0'
	lQuery     = 'q'
	lPrompt    = 'p'
	lIDs       = '#'
	lTool      = 't'
	lUnordered = '+'
	lEmbeds    = 'e'
)

// maxNesting bounds tool results inside tool results, and namespaces of tools
// inside namespaces; no API nests them.
const maxNesting = 4

// options are what the engine's template or tokenizer is told apart from the
// messages. Most of them show at the front of the prompt or change all of it.
var options = [...]field{fPrevious, fChatTemplate, fTemplateOptions, fEffort, fThink, fReasoning, fThinking, fOutputConfig,
	fSafety, fCitations, fStrictTools, fToolPrompt, fGuideline, fDocuments,
	fSpecialTokens, fTruncation, fTruncationSide, fMediaOptions, fProcessorOptions, fFeatures}

func (s *Scanner) feedOptions() {
	for _, f := range options {
		v := s.fields[f]
		if !s.tells(v) {
			continue
		}
		if (f == fReasoning || f == fThinking || f == fOutputConfig) && s.first(v) == '{' {
			s.efforts(f, v)
			continue
		}
		s.mark(lOption)
		s.mark('0' + byte(f))
		if s.first(v) == '{' {
			s.unordered(v)
		} else {
			s.value(v)
		}
	}
}

// efforts are the members that say whether and how hard a model shall think, by
// OpenAI, Anthropic, Cohere and SGLang, of objects that also say what of that is to
// be told, and where to cut it off. The type is that of Anthropic's and Cohere's
// thinking, which SGLang and vLLM give to the template.
var efforts = [...]string{"effort", "reasoning_effort", "enabled", "enable", "type"}

func (s *Scanner) efforts(f field, v span) {
	if v.cut() {
		return
	}
	var said [len(efforts)]span
	for w := s.enter(v); w.next(); {
		if i := slices.Index(efforts[:], string(w.name())); i >= 0 {
			said[i] = w.value
		}
	}
	for i, v := range said {
		if s.says(v) {
			s.mark(lOption)
			s.mark('0' + byte(f))
			s.mark('0' + byte(i))
			s.value(v)
		}
	}
}

// feedChat feeds what a chat template renders, in the order most templates
// have: what is the same for all turns of a conversation first.
func (s *Scanner) feedChat() {
	s.feedOptions()
	for _, f := range [...]field{fTools, fFunctions} {
		if v := s.fields[f]; s.first(v) == '[' && !s.hollow(v) {
			s.mark(lTools)
			s.tools(v, 0)
		}
	}
	for _, f := range [...]field{fSystem, fInstructions} {
		if v := s.fields[f]; s.tells(v) && (s.first(v) == '"' || s.first(v) == '[') {
			s.roleOnly("system")
			s.content(v, 0)
		}
	}
	if v := s.fields[fMessages]; s.first(v) == '[' {
		s.conversations(v)
	}
}

// conversations feeds the messages of a chat, or of vLLM's batch of chats: a
// list of lists. Of a batch the first is chained, as in batch.
func (s *Scanner) conversations(v span) {
	if s.at(s.space(int(v.from)+1)) != '[' {
		s.messages(v)
		return
	}
	n := 0
	for w := s.enter(v); w.next(); n++ {
		if n == 1 {
			s.begin(toCount)
		}
		if s.first(w.value) == '[' {
			s.messages(w.value)
		}
	}
	s.begin(toChain)
	s.prompts = max(s.prompts, n)
}

// feedInput feeds the input of OpenAI's responses, and vLLM's of turns before.
func (s *Scanner) feedInput() {
	if v := s.fields[fPreviousInput]; s.first(v) == '[' {
		for w := s.enter(v); w.next(); {
			s.reading(lMessage, w.value)
		}
	}
	switch v := s.fields[fInput]; s.first(v) {
	case '"':
		s.roleOnly("user")
		s.content(v, 0)
	case '[':
		s.messages(v)
	}
}

func (s *Scanner) roleOnly(role string) {
	s.systemic = role == "system"
	s.mark(lMessage)
	s.mark(lRole)
	s.mark(lString)
	s.room(len(role))
	s.n += copy(s.buf[s.n:], role)
}

func (s *Scanner) messages(v span) {
	for w := s.enter(v); w.next(); {
		if s.first(w.value) == '{' {
			s.message(w.value)
		}
	}
}

// usual are the fields that most messages have no others than.
const usual = 1<<mRole | 1<<mName | 1<<mCallID | 1<<mContent | 1<<mToolCalls

func (s *Scanner) message(v span) {
	var f [nMessageFields]span
	more := note(&s.lexer, v, messageFieldOf, f[:])&^usual != 0
	s.mark(lMessage)
	s.systemic = s.is(f[mRole], `"system"`)
	s.labelled(lRole, f[mRole])
	s.labelled(lName, f[mName])
	s.labelled(lID, f[mCallID])
	if more {
		s.labelled(lNamespace, f[mNamespace])
		s.thoughts(&f)
	}
	s.content(f[mContent], 0)
	if more {
		s.labelled(lCitations, f[mCitations])
		s.images(f[mImages])
		s.reading(lRefusal, f[mRefusal])
	}
	if v := f[mToolCalls]; s.first(v) == '[' {
		for w := s.enter(v); w.next(); {
			s.call(w.value)
		}
	}
	if more {
		s.item(v, &f)
	}
}

// thoughts feeds what a model thought before it wrote a message.
func (s *Scanner) thoughts(f *[nMessageFields]span) {
	s.reading(lReasoning, f[mReasoning])
	if s.present(f[mSummary]) {
		s.mark(lSummary)
		s.content(f[mSummary], 0)
	}
	s.reading(lReasoning, f[mEncrypted])
}

// item feeds what items of a response's input have, and developers' messages.
func (s *Scanner) item(v span, f *[nMessageFields]span) {
	s.call(f[mFunction])
	s.reading(lArguments, f[mArguments])
	if s.present(f[mOutput]) {
		s.mark(lOutput)
		s.content(f[mOutput], 0)
	}
	if v := f[mTools]; s.present(v) {
		s.mark(lTools)
		s.tools(v, 0)
	}
	if s.present(f[mType]) && !v.cut() && !s.any(f) {
		// An item that an engine's own tools made.
		s.reading(lUnknown, v)
	}
}

// any reports whether a message has anything to render. One with a role may be
// empty; of another item an empty member says nothing.
func (s *Scanner) any(f *[nMessageFields]span) bool {
	role := s.says(f[mRole])
	for _, v := range f[mContent : mTools+1] {
		if s.tells(v) || role && s.present(v) {
			return true
		}
	}
	return false
}

// call feeds one tool call: its id, the function's name and the arguments.
func (s *Scanner) call(v span) {
	if s.first(v) != '{' {
		return
	}
	var f [nMessageFields]span
	note(&s.lexer, v, messageFieldOf, f[:])
	s.mark(lCall)
	s.labelled(lID, f[mID])
	if inner := f[mFunction]; s.first(inner) == '{' {
		note(&s.lexer, inner, messageFieldOf, f[:])
	}
	s.labelled(lName, f[mName])
	s.labelled(lNamespace, f[mNamespace])
	s.reading(lArguments, f[mArguments])
	s.found = true
}

// labelled feeds v behind a mark, if it is present.
func (s *Scanner) labelled(letter byte, v span) {
	switch {
	case s.first(v) == '"':
		s.twoMarks(letter, lString)
		s.text(v)
	case s.present(v):
		s.mark(letter)
		s.value(v)
	}
}

// reading feeds v like labelled, as something that makes a prompt by itself.
func (s *Scanner) reading(letter byte, v span) {
	s.labelled(letter, v)
	s.found = s.found || s.present(v)
}

// content feeds a text or a list of parts. Neighbouring texts become one.
func (s *Scanner) content(v span, nesting int) {
	switch {
	case s.first(v) == '"':
		s.words(v, false)
	case s.first(v) == '[':
		joined := false
		for w := s.enter(v); w.next(); {
			joined = s.part(w.value, joined, nesting)
		}
	case s.screenshot(v):
	case s.present(v):
		s.mark(lUnknown)
		s.value(v)
	}
}

// words feeds one text of a content and reports whether another one would
// join it.
func (s *Scanner) words(v span, joined bool) bool {
	raw := s.inside(v)
	if (s.leading || s.systemic) && bytes.HasPrefix(raw, billing) {
		if raw = withoutBilling(raw); len(raw) == 0 {
			return joined
		}
	}
	s.leading = false
	if joined {
		s.emit(lineFeed)
	} else {
		s.mark(lContent)
	}
	s.found = s.found || len(raw) > 0
	s.raw(raw, v)
	return true
}

// lineFeed is the canonical form of the one that joins texts.
var lineFeed = []byte(`\n`)

// besides are the fields that may say something beside a part's text.
const besides = 1<<pThinking | 1<<pImage | 1<<pAudio | 1<<pVideo | 1<<pFile | 1<<pInput | 1<<pContent | 1<<pEmbeds

// part feeds one part of a content. Of a part that has all members of a client's
// structure, those that say nothing leave it to another one to say what it is.
func (s *Scanner) part(v span, joined bool, nesting int) bool {
	if s.first(v) == '"' {
		return s.words(v, joined)
	}
	if s.first(v) != '{' {
		s.labelled(lUnknown, v)
		return false
	}
	var f [nPartFields]span
	noted := note(&s.lexer, v, partFieldOf, f[:])
	if s.first(f[pText]) == '"' {
		says := s.says(f[pText])
		if says && noted&besides == 0 || s.textual(&f, says) {
			return s.words(f[pText], joined)
		}
		if says {
			s.words(f[pText], joined)
		}
	}
	switch {
	case s.says(f[pEmbeds]):
		s.embeds(f[pEmbeds])
	case s.first(f[pThinking]) == '"' && s.says(f[pThinking]):
		s.reading(lReasoning, f[pThinking])
	case s.tells(f[pContent]) && string(s.headOf(f[pType])) == "search_result": // SGLang shows its title and source too
		s.unknown(v, noted)
	case s.tells(f[pContent]) && nesting < maxNesting: // a tool's result
		s.mark(lOutput)
		s.labelled(lID, f[pID])
		s.content(f[pContent], nesting+1)
	case string(s.headOf(f[pType])) == "tool_result" && !s.tells(f[pContent]): // of a tool that had nothing to tell
		s.mark(lOutput)
		s.labelled(lID, f[pID])
		s.found = true
	case s.tells(f[pInput]):
		s.use(&f)
	case s.media(&f):
	case s.says(f[pInput]) && s.says(f[pName]): // of a tool that takes nothing
		s.use(&f)
	default:
		s.unknown(v, noted)
	}
	return false
}

// unknown feeds a part as it came. One that is cut hasn't shown yet what it is.
func (s *Scanner) unknown(v span, noted uint64) {
	if v.cut() {
		return
	}
	if s.found = true; noted&(1<<pCache) == 0 {
		s.labelled(lUnknown, v)
		return
	}
	s.mark(lUnknown)
	s.without(v, func(name []byte) bool { return partFieldOf(name) == pCache })
}

// textual reports whether a part with a text has nothing else to say, and isn't of
// a type that has its say elsewhere.
func (s *Scanner) textual(f *[nPartFields]span, says bool) bool {
	if s.shows(f[pImage]) || s.shows(f[pAudio]) || s.shows(f[pVideo]) {
		return false
	}
	switch string(s.headOf(f[pType])) {
	case "", "text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal":
		return says || !s.more(f)
	}
	return says && !s.more(f)
}

// more reports whether a part says something by what is neither a text nor a
// picture.
func (s *Scanner) more(f *[nPartFields]span) bool {
	return s.says(f[pEmbeds]) || s.says(f[pThinking]) || s.tells(f[pContent]) || s.tells(f[pInput]) || s.shows(f[pFile])
}

// use feeds the use of a tool.
func (s *Scanner) use(f *[nPartFields]span) {
	s.mark(lCall)
	s.labelled(lID, f[pID])
	s.labelled(lName, f[pName])
	s.reading(lArguments, f[pInput])
}

// text feeds a string.
func (s *Scanner) text(v span) { s.raw(s.inside(v), v) }

// raw feeds the raw text of v, or the end of it. Where the body is cut, half an
// escape may be left over.
func (s *Scanner) raw(raw []byte, v span) {
	if v.clean() {
		s.emit(raw)
		return
	}
	if !s.escaped(raw, v.cut()) && !v.cut() {
		s.broken = true
	}
}
