package prompt

import "slices"

func (w *twin) tools(n *node, nesting int) {
	if !n.is('[') {
		w.value(n)
		return
	}
	for _, tool := range n.members {
		w.tool(tool, nesting, false)
	}
}

func (w *twin) tool(n *node, nesting int, inner bool) {
	if !n.is('{') {
		w.value(n)
		return
	}
	f := fieldsOf(n, toolFieldOf)
	functional := !f[tType].is('"') || slices.Contains([]string{"", "function", "namespace"}, f[tType].text)
	if !inner && !f[tFunction].tells() && (!f[tName].says() || !functional) {
		keys, members := n.unique()
		shown := &node{kind: '{'}
		for i, m := range members {
			if !slices.Contains([]string{"headers", "authorization", "container", "vector_store_ids", "user_location", "cache_control"}, keys[i]) {
				shown.keys, shown.members = append(shown.keys, keys[i]), append(shown.members, m)
			}
		}
		w.value(shown)
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
	if !inner && f[tFunction].tells() {
		w.mark('t')
		w.mark('0' + byte(tFunction))
		w.tool(f[tFunction], nesting, true)
	}
	if !inner && f[tTools].tells() {
		w.mark('t')
		w.mark('0' + byte(tTools))
		if nesting < 4 {
			w.tools(f[tTools], nesting+1)
		} else {
			w.value(f[tTools])
		}
	}
	w.mark('}')
}
