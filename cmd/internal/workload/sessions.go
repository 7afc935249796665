package workload

// dialogue is what chats and agents have in common.
type dialogue struct {
	turns, first, next, output, think float64
	longest                           int // tokens of a prompt
}

// turnsMax bounds a session, and with it the longest prompt.
const turnsMax = 200

// converse adds a session's turns to a thread: as many as chance wants, but no
// prompt longer than d.longest.
func (d *dialogue) converse(s source, t *thread) {
	turns := min(1+int(s.ExpFloat64()*max(d.turns-1, 0)+0.5), turnsMax)
	for i := range turns {
		message, turn := s.about(d.next, 0.8), Turn{}
		if i == 0 {
			message = s.about(d.first, 0.7)
		} else {
			turn.Gap = seconds(d.think * s.ExpFloat64())
		}
		if t.tokens+message > d.longest {
			if i > 0 {
				return
			}
			message = max(d.longest-t.tokens, 1)
		}
		t.add(segment(s.fresh(), message))
		t.ask(turn, segment(s.fresh(), s.about(d.output, 0.6)))
	}
}

// sessions makes closed-loop sessions until there are enough requests, one
// session started every mean number of turns seconds.
func (d *dialogue) sessions(s source, requests int, begin func() *thread) *Workload {
	w := &Workload{Closed: true}
	at := 0.0
	for made := 0; made < requests; {
		at += s.ExpFloat64() * max(d.turns, 1)
		t := begin()
		d.converse(s, t)
		made += len(t.turns)
		w.Sessions = append(w.Sessions, Session{Start: seconds(at), Turns: t.turns})
	}
	w.Span = seconds(at)
	return w
}

func makeChat(p params, s source, requests int) *Workload {
	d := dialogue{turns: p["turns"], first: p["first"], next: p["user"], output: p["output"], think: p["think"], longest: 32_000}
	system := segment(s.fresh(), int(p["system"]))
	return d.sessions(s, requests, func() *thread { return newThread(system) })
}

func makeAgents(p params, s source, requests int) *Workload {
	d := dialogue{turns: p["turns"], first: p["task"], next: p["result"], output: p["output"], think: p["think"], longest: 120_000}
	scaffolds := prefixes(s, int(p["kinds"]), p["scaffold"], 0.2)
	w := d.sessions(s, requests, func() *thread { return newThread(scaffolds[s.IntN(len(scaffolds))]) })
	w.KVTokens = int(p["kv"])
	return w
}
