package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Bounds of what is read when Options leave them open.
const (
	// DefaultMaxBytes bounds a file after decompression: the whole file is
	// held in memory while it is read.
	DefaultMaxBytes = 512 << 20
	// DefaultMaxConversations bounds what one replay holds.
	DefaultMaxConversations = 100_000
)

// Options say how to read a file. The zero value detects the format and has
// the default bounds.
type Options struct {
	// Format is a name of Formats, or empty to tell it from the first record.
	Format string
	// MaxBytes bounds the decompressed size; a larger file is an error.
	// Zero means DefaultMaxBytes.
	MaxBytes int64
	// MaxConversations ends the reading early, without an error. Zero means
	// DefaultMaxConversations.
	MaxConversations int
}

// Error is a fault of the file at a line, counted from 1 in the decompressed
// text. It never quotes the text.
type Error struct {
	Line int
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// ReadFile reads the file at path; see Read.
func ReadFile(path string, o Options) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening trace: %w", err)
	}
	defer f.Close()
	t, err := Read(f, o)
	if err != nil {
		return nil, fmt.Errorf("reading trace %s: %w", path, err)
	}
	return t, nil
}

// Read reads conversations from r, which may be gzip-compressed. A record that
// isn't of the format is an *Error with its line; a file without a single
// conversation is an error too.
func Read(r io.Reader, o Options) (*Trace, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxConversations <= 0 {
		o.MaxConversations = DefaultMaxConversations
	}
	data, err := readAll(r, o.MaxBytes)
	if err != nil {
		return nil, err
	}
	records := newRecords(data)
	first, err := records.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file holds no records")
	}
	if err != nil {
		return nil, err
	}
	f, err := choose(o.Format, first)
	if err != nil {
		return nil, &Error{Line: records.line, Err: err}
	}

	t := &Trace{Format: f.Name}
	b := &builder{trace: t, max: o.MaxConversations, ids: make(map[string]int)}
	parse := f.parser(b)
	for record := first; ; {
		if err := parse(record); err != nil {
			return nil, &Error{Line: records.line, Err: err}
		}
		if b.full() {
			break
		}
		record, err = records.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(t.Conversations) == 0 {
		return nil, fmt.Errorf("none of the %d records has a message for a model", t.Skipped)
	}
	return t, nil
}

// choose finds the format by name or by the fields of the first record.
func choose(name string, first json.RawMessage) (format, error) {
	if name != "" {
		i := slices.IndexFunc(formats, func(f format) bool { return f.Name == name })
		if i < 0 {
			return format{}, fmt.Errorf("unknown format %q, known are %s", name, strings.Join(names(), ", "))
		}
		return formats[i], nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(first, &fields); err != nil {
		return format{}, errors.New("a record is not a JSON object")
	}
	for _, f := range formats {
		if slices.ContainsFunc(f.marks, func(mark []string) bool { return hasAll(fields, mark) }) {
			return f, nil
		}
	}
	return format{}, fmt.Errorf("the first record's fields are those of no known format; known are %s", strings.Join(names(), ", "))
}

func hasAll(fields map[string]json.RawMessage, mark []string) bool {
	for _, name := range mark {
		if _, ok := fields[name]; !ok {
			return false
		}
	}
	return true
}

// readAll reads at most limit bytes, through gzip if r begins like it.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	buffered := bufio.NewReader(r)
	r = buffered
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		r = z
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("the text is longer than %d bytes", limit)
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil
}

// records walks over the JSON values of a file, whether they are the elements
// of one array or stand one after the other.
type records struct {
	data    []byte
	decoder *json.Decoder
	array   bool
	counted int // bytes of data whose newlines are in line
	line    int // of the record last returned
}

func newRecords(data []byte) *records {
	r := &records{data: data, decoder: json.NewDecoder(bytes.NewReader(data)), line: 1}
	if text := bytes.TrimLeft(data, " \t\r\n"); len(text) > 0 && text[0] == '[' {
		r.array = true
		_, _ = r.decoder.Token() // the bracket just seen
	}
	return r
}

// next returns the next record, io.EOF after the last.
func (r *records) next() (json.RawMessage, error) {
	if r.array && !r.decoder.More() {
		if _, err := r.decoder.Token(); err != nil {
			return nil, &Error{Line: r.lineAt(len(r.data)), Err: errors.New("the array isn't closed")}
		}
		return nil, io.EOF
	}
	start := int(r.decoder.InputOffset())
	var raw json.RawMessage
	if err := r.decoder.Decode(&raw); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		at := start
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			at = int(syntax.Offset)
		} else if errors.Is(err, io.ErrUnexpectedEOF) {
			at = len(r.data)
		}
		return nil, &Error{Line: r.lineAt(at), Err: errors.New("broken JSON")}
	}
	r.line = r.lineAt(int(r.decoder.InputOffset()) - len(raw))
	return raw, nil
}

// lineAt counts on from where it stopped: offsets only grow while a file is
// read without error.
func (r *records) lineAt(offset int) int {
	offset = max(r.counted, min(offset, len(r.data)))
	line := r.line + bytes.Count(r.data[r.counted:offset], []byte("\n"))
	r.counted = offset
	r.line = line
	return line
}
