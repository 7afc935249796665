package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// Caddy's access log reads the length of a body that the transport may not yet
// have done with, where nobody else has read it: a race that is none of ours.
const unlogged = "log_skip\n"

// Whatever a client sends, in whatever frames, an engine gets it as it would from
// plain Caddy, and the client the answer. Requests are made at random and sent
// both ways.
func TestRequestsPassAsThroughPlainCaddy(t *testing.T) {
	engines := newEngines(t, 2)
	for _, e := range engines {
		e.fail(echo)
	}
	g := site{
		upstreams: addrs(engines),
		policy:    "max_body 4KiB\nsession_header X-Session-Id",
		before:    unlogged + "@plain header X-Plain *\nhandle @plain {\n reverse_proxy " + strings.Join(addrs(engines), " ") + " {\n lb_policy random\n}\n}",
	}.start(t)
	rng := rand.New(rand.NewPCG(7, 20))
	for i := range 600 {
		r := randomRequest(rng)
		cuts := rng.Uint64()
		ours, err := g.exchange(r.wire(""), cuts)
		if err != nil {
			t.Fatalf("request %d, %s: %v", i, r, err)
		}
		plain, err := g.exchange(r.wire("X-Plain: 1\r\n"), cuts)
		if err != nil {
			t.Fatalf("request %d through plain Caddy, %s: %v", i, r, err)
		}
		if ours != plain {
			t.Errorf("request %d, %s:\nhas      %.600s\nplainly  %.600s", i, r, ours, plain)
		}
	}
	g.idle()
}

// echo tells what arrived.
func echo(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	if r.ContentLength >= 0 && r.ContentLength != int64(len(body)) {
		err = fmt.Errorf("%d bytes of %d", len(body), r.ContentLength)
	}
	fmt.Fprintf(w, "%s %s %x %d %v\n", r.Method, r.URL, sha256.Sum256(body), len(body), err)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		switch name {
		case "X-Plain", "Content-Length": // chunks that were kept go on with a length
		default:
			fmt.Fprintf(w, "%s: %q\n", name, r.Header[name])
		}
	}
	fmt.Fprintf(w, "%q\n", r.Trailer)
	return true
}

// rawRequest is a request as its client writes it.
type rawRequest struct {
	method, path string
	head         []string
	body         []byte
	chunks       []int // sizes; nil: with a length
	trailer      string
}

func (r rawRequest) String() string {
	return fmt.Sprintf("%s %s %q, %d bytes %.80q, chunks %d, trailer %q", r.method, r.path, r.head, len(r.body), r.body, r.chunks, r.trailer)
}

func (r rawRequest) wire(more string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n%s", r.method, r.path, more)
	for _, line := range r.head {
		b.WriteString(line + "\r\n")
	}
	if r.chunks == nil {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(r.body))
		b.Write(r.body)
		return b.Bytes()
	}
	b.WriteString("Transfer-Encoding: chunked\r\n")
	if r.trailer != "" {
		b.WriteString("Trailer: X-Sum\r\n")
	}
	b.WriteString("\r\n")
	rest := r.body
	for _, n := range r.chunks {
		if n = min(n, len(rest)); n > 0 {
			fmt.Fprintf(&b, "%x;ext=1\r\n%s\r\n", n, rest[:n])
			rest = rest[n:]
		}
	}
	if len(rest) > 0 {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(rest), rest)
	}
	b.WriteString("0\r\n" + r.trailer + "\r\n")
	return b.Bytes()
}

func one[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func randomRequest(rng *rand.Rand) (r rawRequest) {
	r.method = one(rng, "POST", "POST", "POST", "POST", "PUT", "GET", "PATCH", "DELETE", "OPTIONS", "QUERY")
	r.path = one(rng, "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/tokenize", "/generate", "/invocations",
		"/v1/audio/transcriptions", "/v1/models", "/v1/responses/resp_1", "/v1//chat/completions/", "/a%20b/v1/rerank?x=%2F&y", "/")
	for range rng.IntN(3) {
		r.head = append(r.head, one(rng, "Content-Type: application/json", "Content-Type: text/plain; charset=utf-16", "Content-Type: multipart/form-data; boundary=x",
			"Content-Encoding: gzip", "Content-Encoding: identity", "Content-Encoding: zstd, br", "Content-Encoding: foo", "Accept-Encoding: gzip", "TE: trailers",
			"Idempotency-Key: k", "Idempotency-Key:", "X-Session-Id: s", "X-Session-Id: "+strings.Repeat("s", 3000), "Incremental: ?1", "Prefer: respond-async", "X-Empty:", "Priority: u=1"))
	}
	r.body = randomBody(rng)
	if rng.IntN(2) == 0 {
		r.chunks = []int{}
		for range rng.IntN(5) {
			r.chunks = append(r.chunks, 1+rng.IntN(2000))
		}
		if rng.IntN(2) == 0 {
			r.trailer = "X-Sum: " + strconv.Itoa(rng.IntN(1000)) + "\r\n"
		}
	}
	return r
}

func randomBody(rng *rand.Rand) []byte {
	// Around the bound of what is looked into, and of nothing.
	text := strings.Repeat("é\\n", one(rng, 0, 1, 10, 900, 1010, 1011, 1012, 1013, 1014, 1020, 5000))
	body := one(rng,
		`{"model":"m","messages":[{"role":"user","content":"`+text+`"}]}`,
		`{"prompt":["`+text+`",[1,2]],"stream":true}`,
		`{"input":"`+text+`","previous_response_id":"resp_1"}`,
		`{"messages":[{"content":"`+text+`"}`, "", "null", "[]", `"`+text+`"`, "{", text, "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--x--\r\n",
		`{"messages":"text"}`, `{"messages":[null,1,{}]}`, "\xef\xbb\xbf"+`{"prompt":"`+text+`"}`, `{"prompt":NaN}`, "{}{}", strings.Repeat("[", 3000))
	switch rng.IntN(6) {
	case 0: // UTF-16, as Python reads it
		var wide []byte
		for _, unit := range utf16.Encode([]rune("\ufeff" + body)) {
			wide = append(wide, byte(unit), byte(unit>>8))
		}
		return wide
	case 1: // packed, and what packers leave behind
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, body)
		_ = w.Close()
		b.WriteString(one(rng, "", "\x00\x00", "garbage"))
		return b.Bytes()
	case 2: // cut anywhere, or not even text
		b := []byte(body)
		if len(b) > 0 {
			b[rng.IntN(len(b))] ^= byte(1 + rng.IntN(255))
			b = b[:rng.IntN(len(b))+1]
		}
		return b
	}
	return []byte(body)
}

// exchange writes a request in pieces and reads the answer to its end. Of what is
// told, connections and times are left out.
func (g *gateway) exchange(wire []byte, cuts uint64) (string, error) {
	conn, err := g.dial(g.t.Context())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	written := make(chan error, 1)
	go func() { written <- inRandomPieces(conn, wire, cuts) }() // ends with the connection
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", fmt.Errorf("reading the answer's body: %w", err)
	}
	if err := <-written; err != nil {
		return "", fmt.Errorf("writing the request: %w", err)
	}
	return fmt.Sprint(res.StatusCode, " ", string(body)), nil
}

func inRandomPieces(conn net.Conn, wire []byte, cuts uint64) error {
	rng := rand.New(rand.NewPCG(cuts, 1))
	for len(wire) > 0 {
		n := len(wire)
		if rng.IntN(3) > 0 {
			n = 1 + rng.IntN(n)
		}
		if _, err := conn.Write(wire[:n]); err != nil {
			return err
		}
		wire = wire[n:]
	}
	return nil
}

// And whatever an engine answers, the client gets as it would from plain Caddy,
// to the byte, and nothing stays reserved.
func TestAnswersPassAsThroughPlainCaddy(t *testing.T) {
	upstream := oddUpstream(t)
	g := site{
		upstreams: []string{upstream},
		policy:    "scrape off",
		before:    unlogged + "@plain header X-Plain *\nhandle @plain {\n reverse_proxy " + upstream + "\n}",
	}.start(t)
	rng := rand.New(rand.NewPCG(7, 21))
	for i := range 500 {
		seed := rng.Uint64()
		path := one(rng, "/v1/chat/completions", "/v1/responses", "/v1/messages", "/generate", "/v1/audio/transcriptions", "/v1/embeddings", "/v1/models")
		body := fmt.Sprintf(`{"stream":%v,"prompt":"a","input":"a","messages":[{"content":"a"}]}`, rng.IntN(2) == 0)
		r := rawRequest{method: one(rng, "POST", "POST", "POST", "HEAD", "GET"), path: path, body: []byte(body), head: []string{fmt.Sprint("X-Seed: ", seed)}}
		ours, plain := g.whole(r.wire("")), g.whole(r.wire("X-Plain: 1\r\n"))
		if ours != plain {
			t.Errorf("answer %d, %s %s, seed %d:\nis       %.700q\nplainly  %.700q", i, r.method, path, seed, ours, plain)
		}
	}
	g.idle()
}

// oddUpstream answers by the seed that a request names, in any frames that HTTP
// has and some that it hasn't.
func oddUpstream(t *testing.T) string {
	l := listen(t)
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with its one request
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				seed, _ := strconv.ParseUint(req.Header.Get("X-Seed"), 10, 64)
				_ = inRandomPieces(conn, oddAnswer(rand.New(rand.NewPCG(seed, 3))), seed)
			}()
		}
	}()
	return l.Addr().String()
}

func oddAnswer(rng *rand.Rand) []byte {
	var b bytes.Buffer
	for range rng.IntN(3) {
		if rng.IntN(3) == 0 {
			b.WriteString(one(rng, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "HTTP/1.1 102 Processing\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"))
		}
	}
	status := one(rng, 200, 200, 200, 200, 200, 201, 202, 204, 304, 307, 400, 404, 429, 500, 503, 529, 599)
	// Without a type, Go's server would guess one, or not, as the reads fall.
	kind := one(rng, "text/event-stream", "text/event-stream; charset=utf-8", "application/json", "application/x-ndjson", "text/plain", "audio/mpeg", "")
	fmt.Fprintf(&b, "HTTP/1.1 %d Status\r\nConnection: close\r\nContent-Type: %s\r\n", status, kind)
	for range rng.IntN(3) {
		b.WriteString(one(rng, "Content-Encoding: gzip", "Retry-After: 5", "Retry-After: x", "X-LLM-Other: 1", "Cache-Control: no-transform", "X-Accel-Buffering: no", "Set-Cookie: a=b") + "\r\n")
	}
	body := strings.Repeat(one(rng, "data: {\"choices\":[]}\n\n", ": ping\r\n\r\n", " \n", "{\"id\":\"x\"}\n", "event: error\ndata: {}\n\n", "\x1f\x8b\x00", "data: {\"error\":{\"code\":500}}\n\n", `"usage":{"prompt_tokens":9,`, "\"id\":\""),
		one(rng, 0, 1, 2, 50, 3000))
	switch rng.IntN(6) {
	case 0:
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	case 1: // to the connection's end
		b.WriteString("\r\n" + body)
	case 2: // cut short
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body)+1+rng.IntN(10), body)
	case 3: // chunks that end early, or wrongly
		fmt.Fprintf(&b, "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s%s", len(body)+rng.IntN(2), body, one(rng, "", "\r\n", "\r\n0\r\n", "xx"))
	default:
		b.WriteString("Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
		for len(body) > 0 {
			n := 1 + rng.IntN(len(body))
			fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
			body = body[n:]
		}
		b.WriteString("0\r\n" + one(rng, "", "X-Sum: 1\r\n") + "\r\n")
	}
	return b.Bytes()
}

// whole is all that comes of a request, but for the time, what the policy tells,
// and where chunks are cut.
func (g *gateway) whole(wire []byte) string {
	g.t.Helper()
	conn, err := g.dial(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(wire); err != nil {
		g.t.Fatal(err)
	}
	var told strings.Builder
	r := bufio.NewReader(conn)
	method, _, _ := strings.Cut(string(wire), " ")
	for {
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			fmt.Fprintf(&told, "%v", err)
			return told.String()
		}
		body, err := io.ReadAll(res.Body)
		res.Header.Del("Date")
		res.Header.Del("X-Llm")
		if len(body) == 0 && method != http.MethodHead {
			// The server frames nothing by when it learns that it is nothing.
			res.Header.Del("Content-Length")
			res.ContentLength, res.TransferEncoding = 0, nil
		}
		fmt.Fprintf(&told, "%s %q %d %v %q %v %q\n", res.Status, res.Header, res.ContentLength, res.TransferEncoding, body, err, res.Trailer)
		if res.StatusCode >= 200 {
			return told.String()
		}
	}
}
