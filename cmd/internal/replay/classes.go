package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/openai/openai-go/v3/packages/ssestream"
)

// Classes of failure. A response other than 200 is "status_" and its code.
const (
	// ClassConnect: no connection could be made.
	ClassConnect = "connect"
	// ClassConnectionLost: the connection ended before any response.
	ClassConnectionLost = "connection_lost"
	// ClassTimeout: the request took longer than Options.Timeout.
	ClassTimeout = "timeout"
	// ClassErrorInStream: an error object in a stream that began with 200.
	ClassErrorInStream = "error_in_stream"
	// ClassStreamWithoutDone: a stream that ended, or broke, before [DONE].
	ClassStreamWithoutDone = "stream_without_done"
	// ClassBadResponse: a response with status 200 that isn't a completion.
	ClassBadResponse = "bad_response"
)

var errNoChoice = errors.New("the response has no choice")

// classify names the failure of a request, empty for success. What the wire
// showed comes before what the SDK made of it.
func classify(ctx context.Context, err error, x *exchange, stream bool) (class, detail string) {
	var streamError *ssestream.StreamError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) || isTimeout(err):
		return ClassTimeout, fmt.Sprintf("after %d events", x.events)
	case x.status == 0 && err != nil:
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
			return ClassConnect, oneLine(op.Err.Error())
		}
		return ClassConnectionLost, oneLine(reason(err))
	case x.status != 0 && x.status != http.StatusOK:
		return fmt.Sprintf("status_%d", x.status), oneLine(messageOf(x.body))
	case stream && x.failed != nil:
		return ClassErrorInStream, oneLine(messageOf(x.failed))
	case errors.As(err, &streamError):
		return ClassErrorInStream, oneLine(streamError.Message)
	case err != nil && x.err == nil:
		// The client gave up on what it read, wherever the stream stood then.
		return ClassBadResponse, oneLine(err.Error())
	case stream && !x.done && x.err != nil:
		return ClassStreamWithoutDone, oneLine(fmt.Sprintf("broke after %d events: %v", x.events, reason(x.err)))
	case stream && !x.done:
		return ClassStreamWithoutDone, fmt.Sprintf("ended after %d events", x.events)
	case !stream && x.err != nil:
		return ClassConnectionLost, oneLine("in the response: " + reason(x.err))
	}
	return "", ""
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// reason is an error's innermost text: those around it repeat method and URL,
// which differ from request to request by the local port.
func reason(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// messageOf finds the message in an error body of the OpenAI form, in vLLM's
// older one or in a bare object; anything else is given as it is.
func messageOf(body []byte) string {
	var m struct {
		Message string `json:"message"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &m) == nil {
		if m.Error.Message != "" {
			return m.Error.Message
		}
		if m.Message != "" {
			return m.Message
		}
	}
	return string(body)
}

// oneLine makes text fit for a line of a report.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxDetail {
		return s
	}
	cut := maxDetail - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
