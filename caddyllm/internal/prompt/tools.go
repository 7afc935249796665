package prompt

// tools feeds definitions of tools.
func (s *Scanner) tools(v span) {
	if s.first(v) != '[' {
		s.value(v)
		return
	}
	for w := s.enter(v); w.next(); {
		s.tool(w.value, false)
	}
}

// tool feeds one definition, or the function in it. Engines read its known
// members into a structure of theirs and print that, so their order is of no
// matter and others are lost; what is in the schema is printed as it came. A
// tool that isn't a function is one of the engine's own.
func (s *Scanner) tool(v span, inner bool) {
	if s.first(v) != '{' {
		s.value(v)
		return
	}
	var f [nToolFields]span
	note(&s.lexer, v, toolFieldOf, f[:])
	if !inner && !s.tells(f[tFunction]) && !s.says(f[tName]) {
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
		s.tool(f[tFunction], true)
	}
	if !v.cut() {
		s.mark('}')
	}
}
