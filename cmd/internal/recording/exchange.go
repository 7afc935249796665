package recording

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Exchange is one request and vLLM's answer. Ids in the answer are numbers in
// the order of their first mention, times are 0.
type Exchange struct {
	Name    string
	Method  string
	Path    string
	Header  http.Header // of the request
	Request []byte
	Status  int
	Answer  http.Header // a Content-Length other than 0 is "*"
	Body    []byte
}

// Exchanges reads all of a version, in the order of their names.
func Exchanges(version string) ([]Exchange, error) {
	files, err := filepath.Glob(filepath.Join(version, "exchanges", "*.txt"))
	if err != nil {
		return nil, fmt.Errorf("looking for recordings: %w", err)
	}
	slices.Sort(files)
	all := make([]Exchange, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a recording: %w", err)
		}
		x, err := ParseExchange(text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		x.Name = strings.TrimSuffix(filepath.Base(file), ".txt")
		all = append(all, x)
	}
	return all, nil
}

// ParseExchange reads the text of one recording: lines of the request's head
// after ">", its body, lines of the answer's head after "<", its body. A body
// stands after an empty line.
func ParseExchange(text []byte) (Exchange, error) {
	x := Exchange{Header: make(http.Header), Answer: make(http.Header)}
	first, rest, err := head(text, "> ", x.Header)
	if err != nil {
		return x, err
	}
	var ok bool
	if x.Method, x.Path, ok = strings.Cut(first, " "); !ok {
		return x, errors.New("parsing a recording: no method and path")
	}
	at := bytes.Index(rest, []byte("\n< "))
	if at < 0 {
		return x, errors.New("parsing a recording: no answer")
	}
	x.Request = bytes.TrimSuffix(bytes.TrimPrefix(rest[:at], []byte("\n")), []byte("\n"))
	first, rest, err = head(rest[at+1:], "< ", x.Answer)
	if err != nil {
		return x, err
	}
	if x.Status, err = strconv.Atoi(first); err != nil {
		return x, fmt.Errorf("parsing a recording: %w", err)
	}
	x.Body = bytes.TrimPrefix(rest, []byte("\n"))
	return x, nil
}

// head reads the lines that begin with mark: a first one and header fields.
func head(text []byte, mark string, header http.Header) (first string, rest []byte, err error) {
	for n := 0; ; n++ {
		after, ok := bytes.CutPrefix(text, []byte(mark))
		if !ok {
			if n == 0 {
				err = fmt.Errorf("parsing a recording: no line with %q", mark)
			}
			return first, text, err
		}
		line, next, _ := bytes.Cut(after, []byte("\n"))
		text = next
		if n == 0 {
			first = string(line)
			continue
		}
		name, value, ok := strings.Cut(string(line), ": ")
		if !ok {
			return first, text, fmt.Errorf("parsing a recording: no header field: %.60q", line)
		}
		header.Add(name, value)
	}
}

// Events are the data of a body of server-sent events, in order, and their
// names where they have some.
func Events(body []byte) (data, names []string) {
	for frame := range strings.SplitSeq(strings.TrimSpace(string(body)), "\n\n") {
		name, text := "", ""
		for line := range strings.Lines(frame) {
			line = strings.TrimSuffix(line, "\n")
			if rest, ok := strings.CutPrefix(line, "event: "); ok {
				name = rest
			}
			if rest, ok := strings.CutPrefix(line, "data: "); ok {
				text += rest
			}
		}
		data, names = append(data, text), append(names, name)
	}
	return data, names
}
