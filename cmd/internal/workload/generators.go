package workload

import "slices"

// Generator makes a workload from chance and a few numbers.
type Generator struct {
	Name   string
	About  string
	Params []Param
	make   func(p params, s source, requests int) *Workload
}

// Usage is the generator's parameters with their defaults.
func (g *Generator) Usage() string { return describe(g.Params) }

// Generators lists them all.
func Generators() []Generator { return slices.Clone(generators) }

var generators = []Generator{
	{
		Name:  "chat",
		About: "long chats with think time behind one system prompt; closed loop",
		Params: []Param{
			{"turns", 6, "mean turns of a session"},
			{"system", 800, "tokens that all sessions begin with"},
			{"first", 2500, "mean tokens of the first message"},
			{"user", 250, "mean tokens of each later one"},
			{"output", 120, "mean tokens of an answer"},
			{"think", 1, "mean seconds between answer and next message"},
		},
		make: makeChat,
	},
	{
		Name:  "agents",
		About: "coding agents: contexts of tens of thousands of tokens, short outputs, tools between turns; closed loop",
		Params: []Param{
			{"kinds", 4, "agents, each with tools and system prompt of its own"},
			{"scaffold", 12000, "tokens of tools and system prompt"},
			{"task", 8000, "mean tokens of the first message"},
			{"turns", 20, "mean turns of a session"},
			{"result", 1800, "mean tokens of a tool's result"},
			{"output", 100, "mean tokens of an answer"},
			{"think", 1.5, "mean seconds that a tool takes"},
			{"kv", 880000, "KV tokens of an engine, FP8 on 80 GB"},
		},
		make: makeAgents,
	},
	{
		Name:  "tenants",
		About: "many system prompts, asked by Zipf; open loop",
		Params: []Param{
			{"prompts", 300, "system prompts"},
			{"system", 4000, "mean tokens of one"},
			{"zipf", 1, "how uneven they are asked"},
			{"user", 400, "mean tokens of a message"},
			{"output", 80, "mean tokens of an answer"},
		},
		make: makeTenants,
	},
	{
		Name:  "hot",
		About: "one system prompt for all; open loop",
		Params: []Param{
			{"system", 4000, "tokens of it"},
			{"user", 500, "mean tokens of a message"},
			{"output", 80, "mean tokens of an answer"},
		},
		make: makeHot,
	},
	{
		Name:  "flash",
		About: "tenants, and for a time a crowd on one long prefix; open loop",
		Params: []Param{
			{"prompts", 100, "system prompts of the others"},
			{"system", 3000, "mean tokens of one"},
			{"document", 8000, "tokens of what the crowd asks about"},
			{"crowd", 0.6, "its share of requests while it is there"},
			{"from", 0.35, "when it comes, share of the time"},
			{"to", 0.75, "when it goes"},
			{"user", 300, "mean tokens of a message"},
			{"output", 80, "mean tokens of an answer"},
		},
		make: makeFlash,
	},
	{
		Name:  "unique",
		About: "prompts that share nothing; open loop",
		Params: []Param{
			{"user", 2000, "mean tokens of a prompt"},
			{"spread", 1, "standard deviation of the logarithm of its length"},
			{"output", 100, "mean tokens of an answer"},
		},
		make: makeUnique,
	},
}

func generator(name string) (*Generator, bool) {
	i := slices.IndexFunc(generators, func(g Generator) bool { return g.Name == name })
	if i < 0 {
		return nil, false
	}
	return &generators[i], true
}

func generatorNames() []string {
	var all []string
	for i := range generators {
		all = append(all, generators[i].Name)
	}
	return all
}

// poisson makes n single requests at one a second; request is told what share
// of the time is over.
func poisson(s source, n int, request func(share float64) *thread) *Workload {
	starts := make([]float64, n)
	at := 0.0
	for i := range starts {
		at += s.ExpFloat64()
		starts[i] = at
	}
	w := &Workload{Sessions: make([]Session, 0, n), Span: seconds(at)}
	for _, start := range starts {
		w.Sessions = append(w.Sessions, Session{Start: seconds(start), Turns: request(start / at).turns})
	}
	return w
}

// question is a request of its own behind a prefix.
func question(s source, p params, prefix ...Segment) *thread {
	t := newThread(prefix...)
	t.add(segment(s.fresh(), s.about(p["user"], 0.7)))
	t.ask(Turn{}, segment(s.fresh(), s.about(p["output"], 0.6)))
	return t
}

// prefixes are n shared texts around mean tokens long.
func prefixes(s source, n int, mean, sigma float64) []Segment {
	all := make([]Segment, max(n, 1))
	for i := range all {
		all[i] = segment(s.fresh(), s.about(mean, sigma))
	}
	return all
}

func makeTenants(p params, s source, requests int) *Workload {
	prompts := prefixes(s, int(p["prompts"]), p["system"], 0.5)
	shares := zipf(len(prompts), p["zipf"])
	return poisson(s, requests, func(float64) *thread { return question(s, p, prompts[s.draw(shares)]) })
}

func makeHot(p params, s source, requests int) *Workload {
	prompt := segment(s.fresh(), int(p["system"]))
	return poisson(s, requests, func(float64) *thread { return question(s, p, prompt) })
}

func makeFlash(p params, s source, requests int) *Workload {
	prompts := prefixes(s, int(p["prompts"]), p["system"], 0.5)
	shares := zipf(len(prompts), 1)
	document := segment(s.fresh(), int(p["document"]))
	return poisson(s, requests, func(at float64) *thread {
		if at >= p["from"] && at < p["to"] && s.Float64() < p["crowd"] {
			return question(s, p, document)
		}
		return question(s, p, prompts[s.draw(shares)])
	})
}

func makeUnique(p params, s source, requests int) *Workload {
	return poisson(s, requests, func(float64) *thread {
		t := newThread()
		t.add(segment(s.fresh(), min(s.about(p["user"], p["spread"]), 100_000)))
		t.ask(Turn{}, segment(s.fresh(), s.about(p["output"], 0.6)))
		return t
	})
}
