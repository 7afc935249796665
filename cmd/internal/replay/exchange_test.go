package replay

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// watch reads body in pieces of the given size and returns what was seen.
func watch(t *testing.T, body []byte, piece int) exchange {
	t.Helper()
	var x exchange
	w := &watched{ReadCloser: io.NopCloser(bytes.NewReader(body)), x: &x}
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{w}, make([]byte, piece)); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestOnlyAnEventOfItsOwnEndsAStream(t *testing.T) {
	for body, want := range map[string]bool{
		"data: [DONE]\n\n":     true,
		"data:[DONE]\r\n\r\n":  true,
		"data: [DONE]":         true,
		": [DONE]\n\n":         false,
		"data: \"[DONE]\"\n\n": false,
		"data: [DONE\n\n":      false,
		"data: " + strings.Repeat("x", 2*maxLine) + "[DONE]\n\n": false,
	} {
		if got := watch(t, []byte(body), 7).done; got != want {
			t.Errorf("done(%.20q) = %t, want %t", body, got, want)
		}
	}
}

func TestAnErrorInTextIsNoError(t *testing.T) {
	for body, want := range map[string]string{
		`data: {"error":{"message":"x"}}`:                             `{"message":"x"}`,
		`data: {"choices":[{"delta":{"content":"{\"error\":1}"}}]}`:   "",
		`data: {"error":null,"choices":[]}`:                           "",
		`data: {"choices":[{"delta":{"content":"an \"error\" in"}}]}`: "",
		`data: {"error":`: "",
	} {
		if got := string(watch(t, []byte(body), 5).failed); got != want {
			t.Errorf("failed(%s) = %s, want %s", body, got, want)
		}
	}
}

// FuzzWatched: what is seen of a body doesn't depend on how it arrives.
func FuzzWatched(f *testing.F) {
	f.Add([]byte("data: {\"error\":{\"message\":\"x\"}}\n\ndata: [DONE]\n\n"), uint8(3))
	f.Add([]byte("data: [DONE]"), uint8(1))
	f.Add([]byte("event: x\r\ndata:\r\n\r\n"), uint8(9))
	f.Fuzz(func(t *testing.T, body []byte, piece uint8) {
		whole, pieces := watch(t, body, len(body)+1), watch(t, body, int(piece)+1)
		if whole.done != pieces.done || whole.events != pieces.events || !bytes.Equal(whole.failed, pieces.failed) {
			t.Errorf("in pieces of %d bytes %+v was seen, whole %+v", int(piece)+1, pieces, whole)
		}
	})
}

func FuzzOneLine(f *testing.F) {
	f.Add("a\nb\x00c")
	f.Add(strings.Repeat("é", 400))
	f.Add("\xff\xfe")
	f.Fuzz(func(t *testing.T, s string) {
		got := oneLine(messageOf([]byte(s)))
		if len(got) > maxDetail || strings.ContainsAny(got, "\n\r\x00") || strings.ToValidUTF8(got, "") != got {
			t.Errorf("oneLine(%q) = %q", s, got)
		}
	})
}
