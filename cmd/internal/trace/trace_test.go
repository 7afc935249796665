package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// shape writes a trace in one line a turn, to compare by eye: the messages'
// roles, "=>" and the first words of the recorded reply, and what is special.
func shape(t *testing.T, tr *Trace) string {
	t.Helper()
	var b strings.Builder
	for _, c := range tr.Conversations {
		b.WriteString(c.ID)
		if c.Start > 0 {
			b.WriteString(" at " + c.Start.String())
		}
		if c.Tools != nil {
			b.WriteString(" with tools")
		}
		b.WriteString("\n")
		for _, turn := range c.Turns {
			b.WriteString(" ")
			if turn.Gap > 0 {
				b.WriteString(" after " + turn.Gap.String())
			}
			if turn.Whole {
				b.WriteString(" whole")
			}
			for _, raw := range turn.Messages {
				var m struct{ Role, Content string }
				if err := json.Unmarshal(raw, &m); err != nil {
					t.Fatal(err)
				}
				b.WriteString(" " + m.Role + ":" + m.Content)
			}
			if turn.Assistant != nil {
				var m struct{ Content string }
				if err := json.Unmarshal(turn.Assistant, &m); err != nil {
					t.Fatal(err)
				}
				b.WriteString(" => " + m.Content)
			}
			b.WriteString("\n")
		}
	}
	return strings.TrimSpace(b.String())
}

// samples has for each format a file in its form, made for this test.
var samples = []struct{ name, format, text, want string }{
	{
		"a conversation ends with the question that is asked live", "conversations",
		`{"id":"a","messages":[{"role":"system","content":"s"},{"role":"user","content":"u1"},{"role":"assistant","content":"a1"},{"role":"user","content":"u2"}]}`,
		"a\n  system:s user:u1 => a1\n  user:u2",
	}, {
		"a prefix stands in front, with its tools, and times are kept", "conversations",
		`{"define":"desk","messages":[{"role":"system","content":"s"}],"tools":[{"type":"function"}]}
{"id":"a","prefix":"desk","start_s":1.5,"gaps_s":[0,2],"messages":[{"role":"user","content":"u1"},{"role":"assistant","content":"a1"},{"role":"user","content":"u2"}]}
{"id":"b","prefix":"desk","messages":[{"role":"user","content":"u3"}]}`,
		"a at 1.5s with tools\n  system:s user:u1 => a1\n  after 2s user:u2\nb with tools\n  system:s user:u3",
	}, {
		"repeated and missing ids are made distinct", "conversations",
		`{"id":"a","messages":[{"role":"user","content":"u"}]} {"id":"a","messages":[{"role":"user","content":"v"}]} {"messages":[{"role":"user","content":"w"}]}`,
		"a\n  user:u\na#2\n  user:v\nrecord-3\n  user:w",
	}, {
		"a greeting by the model belongs to the first turn", "fastchat",
		`[{"id":"x_0","conversations":[{"from":"gpt","value":"Hi."},{"from":"human","value":"Who?"},{"from":"gpt","value":"Me."}]},
		  {"id":"x_1","conversations":[]}]`,
		"x_0\n  assistant:Hi. user:Who? => Me.",
	}, {
		"questions have no replies", "mt-bench",
		`{"question_id": 81, "category": "writing", "turns": ["Compose.", "Rewrite."]}`,
		"81\n  user:Compose.\n  user:Rewrite.",
	}, {
		"tool calls and their results are turns", "tau-bench",
		`[{"task_id":3,"trial":1,"reward":0.0,"traj":[{"role":"system","content":"policy"},{"role":"user","content":"book"},
		  {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
		  {"role":"tool","tool_call_id":"c1","name":"f","content":"r"},{"role":"assistant","content":"done"}]}]`,
		"task-3-1\n  system:policy user:book => \n  tool:r => done",
	}, {
		"an input that begins like the session's first is the whole prompt", "lmcache",
		`{"session":"s","turn":0,"timestamp":1000000,"input":"fix it","output":"ls"}
{"session":"t","turn":0,"timestamp":3000000,"input":"other","output":"pwd"}
{"session":"s","turn":1,"timestamp":2500000,"input":"fix it\nresult","output":"cat"}
{"session":"t","turn":1,"timestamp":3000000,"input":"more","output":""}`,
		"s\n  user:fix it => ls\n  after 1.5s whole user:fix it\nresult => cat\nt at 2s\n  user:other => pwd\n  user:more",
	},
}

func TestReadKnowsEachFormatByItsFirstRecord(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			for _, format := range []string{"", s.format} {
				tr, err := Read(strings.NewReader(s.text), Options{Format: format})
				if err != nil {
					t.Fatalf("Read(format %q) = %v, want a trace", format, err)
				}
				if tr.Format != s.format {
					t.Errorf("Read(format %q) took it for %q, want %q", format, tr.Format, s.format)
				}
				if got := shape(t, tr); got != s.want {
					t.Errorf("Read(format %q) =\n%s\nwant\n%s", format, got, s.want)
				}
			}
		})
	}
}

func TestReadDecompresses(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(samples[0].text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	tr, err := Read(bytes.NewReader(b.Bytes()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := shape(t, tr); got != samples[0].want {
		t.Errorf("Read(gzip) =\n%s\nwant\n%s", got, samples[0].want)
	}
	if _, err := Read(bytes.NewReader(b.Bytes()[:b.Len()/2]), Options{}); err == nil {
		t.Error("Read(half a gzip file) = nil, want an error")
	}
}

func TestMessagesStayAsTheyStoodInTheFile(t *testing.T) {
	message := `{"content" : "caf\u00e9 <&> 9007199254740993", "role":"user", "x":9007199254740993}`
	tr, err := Read(strings.NewReader(`{"messages":[`+message+`]}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(tr.Conversations[0].Turns[0].Messages[0]); got != message {
		t.Errorf("Messages[0] = %s, want %s", got, message)
	}
}

func TestFaultsAreGivenWithTheirLine(t *testing.T) {
	good := `{"messages":[{"role":"user","content":"u"}]}` + "\n"
	for _, c := range []struct {
		name, text, want string
		line             int
	}{
		{"broken record", good + good + `{"messages":[}` + "\n" + good, "broken JSON", 3},
		{"record cut off", good + `{"messages":[{"role":"us`, "broken JSON", 2},
		{"wrong type", good + "\n\n" + `{"messages":"secret"}`, `field "messages" holds a JSON string`, 4},
		{"unknown role", good + `{"messages":[{"role":"oracle"}]}`, "message 0 has no role", 2},
		{"unknown prefix", good + `{"prefix":"p","messages":[]}`, "no earlier line defines", 2},
		{"negative time", `{"start_s":-1,"messages":[{"role":"user"}]}`, "below 0", 1},
		{"array not closed", "[\n" + good + ",\n" + good, "isn't closed", 5},
		{"no known fields", `{"prompt":"x"}`, "no known format", 1},
		{"not an object", `"x"`, "not a JSON object", 1},
		{"someone else", `{"conversations":[{"from":"narrator","value":"x"}]}`, "unknown to the format", 1},
		{"no session", `{"session":"","input":"x"}`, "names no session", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.text), Options{})
			var at *Error
			if !errors.As(err, &at) {
				t.Fatalf("Read = %v, want an *Error", err)
			}
			if at.Line != c.line || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Read = %q, want line %d and %q", err, c.line, c.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("Read = %q quotes the file's text", err)
			}
		})
	}
}

func TestFilesWithoutConversationsAreErrors(t *testing.T) {
	for _, text := range []string{"", " \n", "[]", `{"messages":[]}`, `{"messages":[{"role":"system","content":"s"}]}`} {
		if tr, err := Read(strings.NewReader(text), Options{}); err == nil {
			t.Errorf("Read(%q) = %d conversations, want an error", text, len(tr.Conversations))
		}
	}
	if _, err := Read(strings.NewReader("{}"), Options{Format: "parquet"}); err == nil || !strings.Contains(err.Error(), "known are conversations") {
		t.Errorf("Read(format parquet) = %v, want the known formats", err)
	}
}

func TestReadKeepsItsBounds(t *testing.T) {
	text := strings.Repeat(`{"messages":[{"role":"user","content":"u"}]}`+"\n", 10) + "broken"
	tr, err := Read(strings.NewReader(text), Options{MaxConversations: 4})
	if err != nil || len(tr.Conversations) != 4 {
		t.Errorf("Read(at most 4) = %v, %v, want 4 conversations and no look at the rest", tr, err)
	}
	if _, err := Read(strings.NewReader(text), Options{MaxBytes: 100}); err == nil || !strings.Contains(err.Error(), "longer than 100 bytes") {
		t.Errorf("Read(at most 100 bytes) = %v, want an error", err)
	}
	sessions := `{"session":"a","input":"1"}{"session":"b","input":"2"}{"session":"a","input":"3"}`
	tr, err = Read(strings.NewReader(sessions), Options{MaxConversations: 1})
	if err != nil || tr.Requests() != 2 {
		t.Errorf("Read(at most 1 session) = %v, %v, want both turns of the first", tr, err)
	}
}

// FuzzRead holds what a replay relies on: each conversation has turns, each
// turn messages that are JSON, no time is negative.
func FuzzRead(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s.text))
	}
	f.Add([]byte("[{\"turns\":[null]},"))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Add([]byte(`{"session":"a","input":"x","timestamp":9223372036854775807}{"session":"a","timestamp":-9223372036854775808}`))
	f.Add([]byte(`{"messages":[],"gaps_s":[1e999]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := Read(bytes.NewReader(data), Options{MaxBytes: 1 << 20, MaxConversations: 100})
		if err != nil {
			return
		}
		if n := len(tr.Conversations); n == 0 || n > 100 {
			t.Fatalf("Read = %d conversations", n)
		}
		for _, c := range tr.Conversations {
			if len(c.Turns) == 0 || c.ID == "" || c.Start < 0 || c.Start > 366*24*time.Hour {
				t.Fatalf("conversation %q has %d turns and starts at %v", c.ID, len(c.Turns), c.Start)
			}
			for _, turn := range c.Turns {
				if len(turn.Messages) == 0 || turn.Gap < 0 {
					t.Fatalf("a turn of %q has %d messages, gap %v", c.ID, len(turn.Messages), turn.Gap)
				}
				for _, m := range turn.Messages {
					if !json.Valid(m) {
						t.Fatalf("message %q is no JSON", m)
					}
				}
			}
		}
	})
}
