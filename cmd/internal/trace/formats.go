package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Info describes a format to people.
type Info struct {
	Name  string
	About string
}

// Formats lists the formats that Read knows.
func Formats() []Info {
	infos := make([]Info, len(formats))
	for i, f := range formats {
		infos[i] = f.Info
	}
	return infos
}

type format struct {
	Info
	// marks are sets of fields; a first record that has all of one set is of
	// this format.
	marks [][]string
	// parser returns a function that takes one record after the other.
	parser func(*builder) func(json.RawMessage) error
}

// formats in the order of detection: LMCache's input and output are the most
// common names, hence last.
var formats = []format{
	{
		Info: Info{"conversations", `ours: {"id", "messages": [OpenAI messages], "tools"?, "prefix"?, "start_s"?, "gaps_s"?} a line; ` +
			`{"define", "messages"} names messages that a later "prefix" puts in front`},
		marks:  [][]string{{"messages"}},
		parser: parseConversations,
	},
	{
		Info:   Info{"fastchat", `FastChat and ShareGPT: {"id", "conversations": [{"from", "value"}]}`},
		marks:  [][]string{{"conversations"}},
		parser: parseFastChat,
	},
	{
		Info:   Info{"mt-bench", `MT-bench questions: {"question_id", "turns": [text]}; no replies recorded`},
		marks:  [][]string{{"turns"}},
		parser: parseMTBench,
	},
	{
		Info:   Info{"tau-bench", `tau-bench trajectories: {"task_id", "trial", "traj": [OpenAI messages]}`},
		marks:  [][]string{{"traj"}},
		parser: parseTauBench,
	},
	{
		Info:   Info{"lmcache", `LMCache agent traces: {"session", "turn", "timestamp" µs, "input", "output"}, a turn a line`},
		marks:  [][]string{{"input", "session"}, {"input", "session_id"}},
		parser: parseLMCache,
	},
}

func names() []string {
	var all []string
	for _, f := range formats {
		all = append(all, f.Name)
	}
	return all
}

// decode fills v from a record. The decoder's own messages quote what they
// found, so only the kind of the fault is passed on.
func decode(record json.RawMessage, v any) error {
	err := json.Unmarshal(record, v)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("field %q holds a JSON %s, not what the format has there", wrong.Field, strings.Fields(wrong.Value + " value")[0])
	}
	if err != nil {
		return errors.New("broken JSON")
	}
	return nil
}

func parseConversations(b *builder) func(json.RawMessage) error {
	type shared struct {
		messages []json.RawMessage
		tools    json.RawMessage
	}
	defined := make(map[string]shared)
	return func(record json.RawMessage) error {
		var r struct {
			ID       string            `json:"id"`
			Define   string            `json:"define"`
			Prefix   string            `json:"prefix"`
			Messages []json.RawMessage `json:"messages"`
			Tools    json.RawMessage   `json:"tools"`
			Start    float64           `json:"start_s"`
			Gaps     []float64         `json:"gaps_s"`
		}
		if err := decode(record, &r); err != nil {
			return err
		}
		if bytes.Equal(r.Tools, []byte("null")) {
			r.Tools = nil
		}
		if r.Define != "" {
			defined[r.Define] = shared{r.Messages, r.Tools}
			return nil
		}
		messages := r.Messages
		if r.Prefix != "" {
			s, ok := defined[r.Prefix]
			if !ok {
				return errors.New(`"prefix" names messages that no earlier line defines`)
			}
			messages = append(s.messages[:len(s.messages):len(s.messages)], messages...)
			if r.Tools == nil {
				r.Tools = s.tools
			}
		}
		turns, err := split(messages)
		if err != nil {
			return err
		}
		for i := range turns {
			if i < len(r.Gaps) {
				if turns[i].Gap, err = seconds(r.Gaps[i]); err != nil {
					return err
				}
			}
		}
		start, err := seconds(r.Start)
		if err != nil {
			return err
		}
		b.add(Conversation{ID: r.ID, Start: start, Turns: turns, Tools: r.Tools})
		return nil
	}
}

// seconds refuses what no recording has, so that no sum of times overflows.
func seconds(s float64) (time.Duration, error) {
	const year = 365 * 24 * 3600
	if !(s >= 0 && s <= year) {
		return 0, errors.New("a time in seconds is below 0 or above a year")
	}
	return time.Duration(s * float64(time.Second)), nil
}

func parseFastChat(b *builder) func(json.RawMessage) error {
	roles := map[string]string{
		"human": "user", "user": "user",
		"gpt": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant", "assistant": "assistant",
		"system": "system",
	}
	return func(record json.RawMessage) error {
		var r struct {
			ID            any `json:"id"`
			Conversations []struct {
				From  string `json:"from"`
				Value string `json:"value"`
			} `json:"conversations"`
		}
		if err := decode(record, &r); err != nil {
			return err
		}
		var messages []json.RawMessage
		for i, m := range r.Conversations {
			role, ok := roles[m.From]
			if !ok {
				return fmt.Errorf("entry %d is from someone unknown to the format", i)
			}
			messages = append(messages, text(role, m.Value))
		}
		turns, err := split(messages)
		if err != nil {
			return err
		}
		b.add(Conversation{ID: label(r.ID), Turns: turns})
		return nil
	}
}

func parseMTBench(b *builder) func(json.RawMessage) error {
	return func(record json.RawMessage) error {
		var r struct {
			ID    any      `json:"question_id"`
			Turns []string `json:"turns"`
		}
		if err := decode(record, &r); err != nil {
			return err
		}
		var turns []Turn
		for _, question := range r.Turns {
			turns = append(turns, Turn{Messages: []json.RawMessage{text("user", question)}})
		}
		b.add(Conversation{ID: label(r.ID), Turns: turns})
		return nil
	}
}

func parseTauBench(b *builder) func(json.RawMessage) error {
	return func(record json.RawMessage) error {
		var r struct {
			Task  any               `json:"task_id"`
			Trial any               `json:"trial"`
			Traj  []json.RawMessage `json:"traj"`
		}
		if err := decode(record, &r); err != nil {
			return err
		}
		turns, err := split(r.Traj)
		if err != nil {
			return err
		}
		b.add(Conversation{ID: strings.Trim("task-"+label(r.Task)+"-"+label(r.Trial), "-"), Turns: turns})
		return nil
	}
}

// text makes a chat message of plain text.
func text(role, content string) json.RawMessage {
	raw, err := json.Marshal(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{role, content})
	if err != nil {
		return json.RawMessage(`{"role":"user","content":""}`) // strings always marshal
	}
	return raw
}

// label writes an id that may be a string or a number.
func label(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return fmt.Sprintf("%.0f", v)
	}
	return ""
}
