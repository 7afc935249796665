package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	exchangeLimit = 3 * time.Minute
	maxAnswer     = 8 << 20 // bytes read of one answer
)

// oneShot has a connection for each request: old servers close theirs after some
// errors, and a POST on a connection that closes is not sent again. Its question
// for that is not shown in recordings, nor is the answer.
var oneShot = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// exchange is one request of the script. It is recorded in a file of its name.
type exchange struct {
	name   string
	method string // POST if empty and there is a body, else GET
	path   string
	header []string // "Name: value"; JSON's content type is added unless one is given
	body   string
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (x *exchange) fill() {
	if x.method == "" {
		x.method = http.MethodGet
		if x.body != "" {
			x.method = http.MethodPost
		}
	}
	typed := slices.ContainsFunc(x.header, func(h string) bool { return strings.HasPrefix(h, "Content-Type:") })
	if x.body != "" && !typed {
		x.header = append(x.header, "Content-Type: application/json")
	}
}

// send sends it to a server and reads the whole answer.
func (x *exchange) send(ctx context.Context, address string) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, x.method, "http://"+address+x.path, strings.NewReader(x.body))
	if err != nil {
		return nil, fmt.Errorf("making the request %s: %w", x.name, err)
	}
	for _, h := range x.header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := oneShot.Do(req)
	if err != nil {
		return nil, fmt.Errorf("sending %s: %w", x.name, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s: %w", x.name, err)
	}
	if len(res.TransferEncoding) > 0 {
		res.Header.Set("Transfer-Encoding", strings.Join(res.TransferEncoding, ", "))
	}
	return &answer{status: res.StatusCode, header: res.Header, body: body}, nil
}

// write renders request and answer as a recording: the request's lines begin
// with ">", the answer's with "<", bodies stand after an empty line.
func (x *exchange) write(a *answer) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "> %s %s\n", x.method, x.path)
	for _, h := range x.header {
		fmt.Fprintf(&b, "> %s\n", h)
	}
	if x.body != "" {
		fmt.Fprintf(&b, "\n%s\n", x.body)
	}
	fmt.Fprintf(&b, "\n< %d\n", a.status)
	var names []string
	for name := range a.header {
		if name != "Date" && name != "Connection" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		value := strings.Join(a.header[name], ", ")
		if name == "Content-Length" && value != "0" {
			value = "*" // ids and times that are not recorded have a length
		}
		fmt.Fprintf(&b, "< %s: %s\n", strings.ToLower(name), value)
	}
	b.WriteByte('\n')
	b.Write(a.body)
	if n := len(a.body); n > 0 && a.body[n-1] != '\n' {
		b.WriteByte('\n')
	}
	return b.Bytes()
}
