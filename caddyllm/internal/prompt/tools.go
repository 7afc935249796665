package prompt

// tools feeds definitions of tools, which stand in so many namespaces.
func (s *Scanner) tools(v span, nesting int) {
	if s.first(v) != '[' {
		s.value(v)
		return
	}
	for w := s.enter(v); w.next(); {
		s.tool(w.value, nesting, false)
	}
}

// tool feeds one definition, or the function in it. Engines read its known
// members into a structure of theirs and print that, so their order is of no
// matter and others are lost; what is in the schema is printed as it came. A
// tool that is neither a function nor a namespace of them is one that the engine
// knows or takes as it is, such as one with a grammar.
func (s *Scanner) tool(v span, nesting int, inner bool) {
	if s.first(v) != '{' {
		s.value(v)
		return
	}
	var f [nToolFields]span
	note(&s.lexer, v, toolFieldOf, f[:])
	if !inner && !s.tells(f[tFunction]) && !(s.says(f[tName]) && s.functional(f[tType])) {
		if v.cut() {
			return // it may still become a function
		}
		if s.first(f[tPassing]) != 0 {
			s.without(v, func(name []byte) bool { return toolFieldOf(name) == tPassing })
			return
		}
		s.value(v)
		return
	}
	s.mark('{')
	for t := tType; t < tFunction; t++ {
		if s.present(f[t]) {
			s.mark(lTool)
			s.mark('0' + byte(t))
			s.value(f[t])
		}
	}
	if s.tells(f[tFunction]) && !inner {
		s.mark(lTool)
		s.mark('0' + byte(tFunction))
		s.tool(f[tFunction], nesting, true)
	}
	if t := f[tTools]; s.tells(t) && !inner {
		s.mark(lTool)
		s.mark('0' + byte(tTools))
		if nesting < maxNesting {
			s.tools(t, nesting+1)
		} else {
			s.value(t)
		}
	}
	if !v.cut() {
		s.mark('}')
	}
}

// functional reports whether a tool's type is that of functions: Anthropic's have
// none.
func (s *Scanner) functional(kind span) bool {
	if !s.present(kind) || s.is(kind, `"function"`) {
		return true
	}
	switch string(s.headOf(kind)) {
	case "", "function", "namespace":
		return true
	}
	return false
}
