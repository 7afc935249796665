package support

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
)

// Bounds of a conversation's length in turns, of the seconds from one question
// to the next (reading the answer and typing), and of the time in which all
// conversations begin.
const (
	turnsMin = 5
	turnsMax = 8
	gapMinS  = 20
	gapMaxS  = 60
	startsS  = 60
)

// desk is a company's support desk. In its texts {name}, {ref}, {day}, {place}
// and {n} stand for what differs from customer to customer.
type desk struct {
	name   string
	intro  string
	places []string
	topics []topic
}

// topic is a section of the handbook and what customers ask about it.
type topic struct {
	title    string
	handbook string
	asks     []string // the first question, worded differently
	answer   string
	follow   string // a second question, asked by some
	reply    string
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Generate writes perDesk conversations for each desk as JSON Lines of the
// "conversations" format, preceded by the desks' system prompts. Conversations
// of the desks alternate, as they do on a shared service.
func Generate(w io.Writer, seed uint64, perDesk int) error {
	rng := rand.New(rand.NewPCG(seed, 0))
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, d := range desks {
		err := e.Encode(struct {
			Define   string    `json:"define"`
			Messages []message `json:"messages"`
		}{d.name, []message{{"system", d.systemPrompt()}}})
		if err != nil {
			return fmt.Errorf("writing a prompt: %w", err)
		}
	}
	for i := range perDesk {
		for _, d := range desks {
			messages := d.conversation(rng)
			gaps := make([]int, len(messages)/2)
			for turn := 1; turn < len(gaps); turn++ {
				gaps[turn] = gapMinS + rng.IntN(gapMaxS-gapMinS+1)
			}
			err := e.Encode(struct {
				ID       string    `json:"id"`
				Prefix   string    `json:"prefix"`
				Start    int       `json:"start_s"`
				Gaps     []int     `json:"gaps_s"`
				Messages []message `json:"messages"`
			}{fmt.Sprintf("%s-%02d", d.name, i+1), d.name, rng.IntN(startsS), gaps, messages})
			if err != nil {
				return fmt.Errorf("writing a conversation: %w", err)
			}
		}
	}
	return nil
}

func (d *desk) systemPrompt() string {
	var b strings.Builder
	b.WriteString(d.intro)
	for i, t := range d.topics {
		fmt.Fprintf(&b, "\n\n## %d. %s\n%s", i+1, t.title, t.handbook)
	}
	return b.String()
}

// conversation walks through some topics in random order.
func (d *desk) conversation(rng *rand.Rand) []message {
	fill := strings.NewReplacer(
		"{name}", pick(rng, customers),
		"{ref}", fmt.Sprintf("%c%c-%05d", 'A'+rng.IntN(26), 'A'+rng.IntN(26), rng.IntN(100000)),
		"{day}", pick(rng, days),
		"{place}", pick(rng, d.places),
		"{n}", fmt.Sprint(2+rng.IntN(28)),
	)
	turns := turnsMin + rng.IntN(turnsMax-turnsMin+1)
	var messages []message
	for _, at := range rng.Perm(len(d.topics)) {
		t := &d.topics[at]
		ask := pick(rng, t.asks)
		if len(messages) == 0 {
			ask = pick(rng, greetings) + " " + ask
		}
		messages = append(messages, message{"user", fill.Replace(ask)}, message{"assistant", fill.Replace(t.answer)})
		if t.follow != "" && rng.IntN(2) == 0 {
			messages = append(messages, message{"user", fill.Replace(t.follow)}, message{"assistant", fill.Replace(t.reply)})
		}
		if len(messages) >= 2*turns {
			break
		}
	}
	return messages[:min(2*turns, len(messages))]
}

func pick(rng *rand.Rand, from []string) string { return from[rng.IntN(len(from))] }

var (
	customers = []string{"Ines", "Tomasz", "Amara", "Jonas", "Priya", "Wen", "Rosa", "Eilidh", "Kofi", "Marek", "Yuki", "Salma"}
	days      = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	greetings = []string{
		"Hello, this is {name}, my customer number is {ref}.",
		"Good morning! {name} here, reference {ref}.",
		"Hi, I wrote to you on {day} already, the ticket is {ref}.",
		"Hello, I'm asking for a friend, {name}, whose number is {ref}.",
	}
)
