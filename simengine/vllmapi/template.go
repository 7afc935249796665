package vllmapi

// A conversation becomes the tokens of its prompt as by a chat template:
//
//	begin  [header "system" end tools… system text end-of-turn]
//	{header role [participant name] [call-result id] end text, media, calls… end-of-turn}…
//	header "assistant" end
//
// Tools stand first, in the turn of the system message, which is made if there
// is none. Each text is cut into tokens by itself, so a message's tokens
// depend on its own text only, and the assistant's reply comes back in the
// next turn as the tokens that were generated.
type conversation struct {
	turns    []turn
	tools    []token
	generate bool      // the assistant's header ends the prompt
	resume   bool      // the last turn stays open
	late     *apiError // what the template refuses
}

// turn is one message.
type turn struct {
	role, name, result string
	content            []token
	text               string // of the content, where it is one string
}

func (c *conversation) tokens() []token {
	size := 4 + len(c.tools)
	for i := range c.turns {
		size += 8 + len(c.turns[i].content) + (len(c.turns[i].role)+len(c.turns[i].name)+len(c.turns[i].result))/textBytes
	}
	tokens := append(make([]token, 0, size), tokenBegin)
	turns := c.turns
	if len(c.tools) > 0 {
		first := turn{role: "system"}
		if len(turns) > 0 && (turns[0].role == "system" || turns[0].role == "developer") {
			first, turns = turns[0], turns[1:]
		}
		first.content = append(c.tools[:len(c.tools):len(c.tools)], first.content...)
		tokens = first.append(tokens, c.resume && len(turns) == 0)
	}
	for i := range turns {
		tokens = turns[i].append(tokens, c.resume && i == len(turns)-1)
	}
	if c.generate {
		tokens = append(appendText(append(tokens, tokenHeader), "assistant"), tokenHeaderEnd)
	}
	return tokens
}

func (t *turn) append(tokens []token, open bool) []token {
	tokens = appendText(append(tokens, tokenHeader), t.role)
	if t.name != "" {
		tokens = appendText(append(tokens, tokenParticipant), t.name)
	}
	if t.result != "" {
		tokens = appendText(append(tokens, tokenCallResult), t.result)
	}
	tokens = append(append(tokens, tokenHeaderEnd), t.content...)
	if open {
		return tokens
	}
	return append(tokens, tokenEndOfTurn)
}

// appendCall adds a call of a tool, as an assistant's turn holds it.
func appendCall(tokens []token, id, name, arguments string) []token {
	tokens = appendText(append(tokens, tokenCall), id)
	tokens = appendText(append(tokens, tokenCallPart), name)
	return appendText(append(tokens, tokenCallPart), arguments)
}
