package caddyllm

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// audioForm is what a client of OpenAI's transcriptions sends.
func audioForm(t *testing.T, model string, file int) (boundary string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("file", "speech.mp3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write(bytes.Repeat([]byte{0xff, 0xfb, '\r', '\n'}, file/4)); err != nil {
		t.Fatal(err)
	}
	for _, f := range [][2]string{{"prompt", "names"}, {"model", model}, {"stream", "true"}} {
		if err := w.WriteField(f[0], f[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.Boundary(), b.Bytes()
}

func TestAFormIsKnownByItsModelAndItsFile(t *testing.T) {
	bound, body := audioForm(t, "whisper", 64_000)
	h := http.Header{"Content-Type": {`multipart/form-data; boundary="` + bound + `"`}}
	if got := boundary(h); got != bound {
		t.Fatalf("boundary = %q, want %q", got, bound)
	}
	q, ok := readForm(bound, body)
	if !ok || q.Model != xxhash.Sum64String("whisper") || q.Bytes != 5 || !q.Stream || q.ExtraTokens != 64_000/audioBytes || q.Chain != nil {
		t.Errorf("readForm = %+v, %v", q, ok)
	}
	// A head that ends within the file shows that there is one.
	if q, ok := readForm(bound, body[:30_000]); !ok || q.Model != 0 {
		t.Errorf("readForm(head) = %+v, %v", q, ok)
	}
	for _, none := range []string{"", "--" + bound, "{}", "--" + bound + "--\r\n"} {
		if q, ok := readForm(bound, []byte(none)); ok {
			t.Errorf("readForm(%q) = %+v, want none", none, q)
		}
	}
	for _, other := range []string{"", "application/json", "multipart/mixed; boundary=a", "multipart/form-data", "multipart/form-data; boundary"} {
		if got := boundary(http.Header{"Content-Type": {other}}); got != "" {
			t.Errorf("boundary of %q = %q", other, got)
		}
	}
}

func FuzzReadForm(f *testing.F) {
	f.Add("b", []byte("--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--"))
	f.Fuzz(func(t *testing.T, boundary string, body []byte) {
		if len(boundary) == 0 || len(boundary) > 70 {
			return
		}
		if q, _ := readForm(boundary, body); q.Bytes > len(body) || q.ExtraTokens > len(body) {
			t.Errorf("%+v of %d bytes", q, len(body))
		}
	})
}
