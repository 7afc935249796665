package enginemetrics

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

const (
	// Lines longer than this are skipped. The longest line of interest is
	// vLLM's cache_config_info, 1 to 3 KiB.
	maxLine = 64 << 10
	// A float64 needs 24 digits; no engine prints a longer value.
	maxNumber = 64
)

// parser is reused: its buffer and its lists are all that a page allocates.
type parser struct {
	in      bufio.Reader
	limited limitedReader
	page    Page
	tallies [len(dialects)][fieldCount]tally
	start   tally
	// prefixed: an engine's own name was seen, whatever it told.
	prefixed bool
}

var parsers = sync.Pool{New: func() any {
	p := new(parser)
	p.in = *bufio.NewReaderSize(nil, maxLine)
	return p
}}

// Parse reads a page in Prometheus text or OpenMetrics format up to its end.
// A limit of 0 or less means DefaultLimit bytes. The errors are ErrTooLarge
// and those of r; what was read before one is not told, as half a page may
// hold half of the engines. Parse may be called concurrently.
func Parse(r io.Reader, limit int64) (Page, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	p := parsers.Get().(*parser)
	defer parsers.Put(p)
	return p.read(r, limit)
}

func (p *parser) read(r io.Reader, limit int64) (Page, error) {
	p.reset(r, limit)
	defer p.reset(nil, 0)
	for {
		line, err := p.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			p.tooLong(line)
			// The rest of the line must not be read as lines of its own.
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = p.in.ReadSlice('\n')
			}
			line = nil
		}
		p.line(line)
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return p.finish(), nil
		case errors.Is(err, ErrTooLarge):
			return Page{}, ErrTooLarge
		default:
			return Page{}, fmt.Errorf("reading metrics page: %w", err)
		}
	}
}

func (p *parser) reset(r io.Reader, limit int64) {
	p.limited = limitedReader{r, limit}
	p.in.Reset(&p.limited)
	p.page = Page{}
	p.start.reset()
	p.prefixed = false
	for d := range p.tallies {
		for f := range p.tallies[d] {
			p.tallies[d][f].reset()
		}
	}
}

// line takes one line. Comments have nothing to tell: a type line may be
// missing or wrong, and the names say what the numbers are.
func (p *parser) line(line []byte) {
	name, rest, ok := splitName(line)
	if !ok {
		return
	}
	d, what, ours := lookup(name)
	start := string(name) == "process_start_time_seconds"
	if !ours && !start {
		if looksLikeSample(rest) {
			p.page.Samples++
		}
		return
	}
	p.page.Samples++
	s, v := sampleOf(rest)
	if start {
		p.start.add(s.key(), v, startTime)
		return
	}
	p.prefixed = p.prefixed || !isBare(d)
	t := &p.tallies[d]
	switch {
	case what.config != nil:
		p.config(t, what.config, s)
	case what.label != "":
		if f, ok := what.values[string(s.value(what.label))]; ok {
			t[f].add(s.key(), v, f)
		}
	default:
		t[what.field].add(s.key(), v, what.field)
	}
}

// tooLong takes the start of a line that is not read further. If it is one of
// ours, its number is unknown: the others' sum would lack it.
func (p *parser) tooLong(start []byte) {
	name, _, ok := splitName(start)
	if !ok {
		return
	}
	d, what, ours := lookup(name)
	if !ours {
		return
	}
	p.prefixed = p.prefixed || !isBare(d)
	if what.config == nil && what.label == "" {
		p.tallies[d][what.field].bad = true
	}
}

// config takes an info series, whose labels hold the numbers.
func (p *parser) config(t *[fieldCount]tally, fields map[string]field, s sample) {
	// All other labels are settings, and would tell two notes of one engine
	// apart.
	key := s.engineKey()
	for rest := s.labels; ; {
		name, value, more, ok := nextLabel(rest)
		if !ok {
			return
		}
		rest = more
		if f, wanted := fields[string(name)]; wanted {
			if v := setting(value, f); v.ok {
				t[f].add(key, v, f)
			}
		}
	}
}

// setting reads a label that holds a setting. Switches are words, and "None"
// stands for a number until the engine has measured its memory.
func setting(value []byte, f field) reading {
	if f == prefixCache {
		on := bytes.EqualFold(value, []byte("true"))
		return reading{v: truth(on), ok: on || bytes.EqualFold(value, []byte("false"))}
	}
	v, ok := number(value)
	return reading{v, ok && v > 0}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// number reads a decimal number. Spellings that only Go knows, such as 0x1p3
// and 1_000, are no numbers of an exposition format; NaN and infinities tell
// nothing.
func number(b []byte) (float64, bool) {
	if len(b) == 0 || len(b) > maxNumber {
		return 0, false
	}
	for _, c := range b {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil
}

// limitedReader fails past its limit, where io.LimitedReader would end.
type limitedReader struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (l *limitedReader) Read(b []byte) (int, error) {
	// One byte beyond the limit tells a page that is too large from one that
	// just fits.
	if int64(len(b)) > l.left+1 {
		b = b[:l.left+1]
	}
	n, err := l.r.Read(b)
	if l.left -= int64(n); l.left < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}
