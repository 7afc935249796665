package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"
)

// chats are the requests that there are: so many conversations of so many
// turns, of which each begins with the one before it.
const (
	conversations = 60
	turns         = 4
	answerTokens  = 40
	turnBytes     = 2500
	// lateBytes is the length of prompts that come when all is well again: so
	// long that no two servers can carry them all. They have nothing in common.
	lateBytes = 30_000
)

// chat is one request.
type chat struct {
	conversation, turn int
	stream             bool
}

func (c chat) body() []byte {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	system, bytes := "system", turnBytes
	if c.conversation >= conversations { // it comes late
		system, bytes = fmt.Sprint("system", c.conversation), lateBytes
	}
	messages := []message{{"system", filler(system, turnBytes)}}
	for i := range c.turn + 1 {
		if i > 0 {
			messages = append(messages, message{"assistant", fmt.Sprintf("Answer %d.", i)})
		}
		messages = append(messages, message{"user", filler(fmt.Sprint(c.conversation, "/", i), bytes)})
	}
	text, err := json.Marshal(map[string]any{
		"model": "llama3.1-8b", "messages": messages, "stream": c.stream, "max_tokens": answerTokens, "ignore_eos": true,
	})
	if err != nil {
		panic(err) // it has strings and numbers only
	}
	return text
}

// filler is text that has nothing in common with that of another name.
func filler(name string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%s.%d ", name, i)
	}
	return b.String()[:n]
}

// end is how a request came out for its client.
type end struct {
	chat     chat
	upstream string // that answered, by the policy's header
	began    time.Time
	ended    time.Time
	status   int
	text     string // the answer's
	whole    bool   // with all that belongs to its end, once
	err      error
	resent   int       // times, since a reload had closed the connection
	reused   time.Time // since when there was the connection; zero for a new one
}

func newRequest(ctx context.Context, address string, c chat) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/chat/completions", bytes.NewReader(c.body()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	// A reload closes connections that are idle. The client sends again what
	// was not answered, as one with this key may.
	req.Header.Set("Idempotency-Key", fmt.Sprint(c))
	return req, nil
}

// ask sends a chat and reads its answer.
func ask(ctx context.Context, client *http.Client, address string, c chat) (e end) {
	e = end{chat: c, began: time.Now()}
	defer func() { e.ended = time.Now() }()
	req, err := newRequest(ctx, address, c)
	if err != nil {
		e.err = err
		return e
	}
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		e.reused = time.Time{}
		if c, ok := got.Conn.(datedConn); ok && got.Reused {
			e.reused = c.made
		}
	}}))
	res, err := client.Do(req)
	if err != nil {
		e.err = err
		return e
	}
	defer res.Body.Close()
	e.status = res.StatusCode
	e.upstream, _, _ = strings.Cut(strings.TrimPrefix(res.Header.Get(exposed), "upstream="), ";")
	if c.stream && strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		e.text, e.whole, e.err = readStream(res.Body)
	} else {
		e.text, e.whole, e.err = readWhole(res.Body)
	}
	return e
}

// datedConn knows when it was made.
type datedConn struct {
	net.Conn
	made time.Time
}

func dialDated(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return datedConn{conn, time.Now()}, nil
}

func readWhole(r io.Reader) (text string, whole bool, err error) {
	body, err := io.ReadAll(r)
	if err != nil {
		return "", false, err
	}
	var answer struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", false, fmt.Errorf("parsing %.200q: %w", body, err)
	}
	if len(answer.Choices) != 1 {
		return "", false, fmt.Errorf("%d choices in %.200q", len(answer.Choices), body)
	}
	return answer.Choices[0].Message.Content, true, nil
}

// readStream reads events. The whole has one beginning, one reason of its end,
// and one word that it is done, which is the last.
func readStream(r io.Reader) (text string, whole bool, err error) {
	var b strings.Builder
	roles, reasons, done := 0, 0, 0
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			done++
			continue
		}
		var event struct {
			Choices []struct {
				Delta struct {
					Role, Content string
				} `json:"delta"`
				Reason *string `json:"finish_reason"`
			} `json:"choices"`
			Error any `json:"error"`
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil || event.Error != nil {
			return b.String(), false, fmt.Errorf("event %.200q: %w", data, errors.Join(err, errEvent))
		}
		if done > 0 {
			return b.String(), false, errAfterDone
		}
		for _, c := range event.Choices {
			b.WriteString(c.Delta.Content)
			if c.Delta.Role != "" {
				roles++
			}
			if c.Reason != nil {
				reasons++
			}
		}
	}
	return b.String(), done == 1 && roles == 1 && reasons == 1, lines.Err()
}

var (
	errEvent     = errors.New("no event of an answer")
	errAfterDone = errors.New("events after the end")
)
