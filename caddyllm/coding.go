package caddyllm

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A coded body goes on as it came. Only to find its prompt it is decoded, as
// far as these bounds allow: max_body bytes of text, and no more than
// maxRatio times the body. Prompts shrink to a tenth or so; what shrinks more
// than two hundredfold was made to hurt.
const (
	maxCodings = 3 // stacked
	maxRatio   = 200
	minText    = 64 << 10 // that a small body may always come to
)

var (
	errCoding = errors.New("decoding a body: unknown coding")
	errRatio  = errors.New("decoding a body: it grows beyond all measure")
)

// codings lists the content codings of a request in the order in which they
// are to be undone, and reports whether all of them are known.
func codings(h http.Header) ([]string, bool) {
	var list []string
	for _, v := range h["Content-Encoding"] {
		for name := range strings.SplitSeq(v, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if name == "" || name == "identity" {
				continue
			}
			if decoders[name] == nil || len(list) == maxCodings {
				return nil, false
			}
			list = append([]string{name}, list...)
		}
	}
	return list, true
}

// decoders are pools, since each has tables and windows.
var decoders = map[string]*sync.Pool{
	"gzip":    pool(func() decoder { return gzipDecoder{new(gzip.Reader)} }),
	"x-gzip":  pool(func() decoder { return gzipDecoder{new(gzip.Reader)} }),
	"deflate": pool(func() decoder { return new(zlibDecoder) }),
	"zstd":    pool(newZstd),
	"br":      pool(func() decoder { return new(brotliDecoder) }),
}

// mostText bounds the text that a body is decoded to, bytes.
func mostText(coded []byte, limit int64) int64 {
	return min(limit, max(int64(len(coded))*maxRatio, minText))
}

func pool(make func() decoder) *sync.Pool { return &sync.Pool{New: func() any { return make() }} }

// decoder reads the text of what it was reset to.
type decoder interface {
	io.Reader
	reset(io.Reader) error
}

type gzipDecoder struct{ *gzip.Reader }

func (d gzipDecoder) reset(r io.Reader) error { return d.Reset(r) }

// brotliDecoder takes a new reader each time: the library's Reset leaves what an
// earlier body that wasn't read to its end had buffered.
type brotliDecoder struct{ *brotli.Reader }

func (d *brotliDecoder) reset(r io.Reader) error {
	d.Reader = brotli.NewReader(r)
	return nil
}

// zlibDecoder is for deflate, which is zlib's format by RFC 9110.
type zlibDecoder struct{ io.ReadCloser }

func (d *zlibDecoder) reset(r io.Reader) (err error) {
	if z, ok := d.ReadCloser.(zlib.Resetter); ok {
		return z.Reset(r, nil)
	}
	d.ReadCloser, err = zlib.NewReader(r)
	return err
}

type zstdDecoder struct{ *zstd.Decoder }

func (d zstdDecoder) reset(r io.Reader) error { return d.Reset(r) }

// newZstd makes a decoder without goroutines. Its window is bounded to the 8
// MiB that RFC 9659 bounds HTTP's to.
func newZstd() decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		panic(err) // the options are constant
	}
	return zstdDecoder{d}
}

// decode returns the first bytes of a coded body's text, up to limit, and
// whether they are all of it. whole says that coded is all of the body; of
// another one, the text ends where its head ends.
func decode(names []string, coded []byte, whole bool, limit int64) (text []byte, complete bool, err error) {
	var r io.Reader = bytes.NewReader(coded)
	for _, name := range names {
		p := decoders[name]
		if p == nil {
			return nil, false, errCoding
		}
		d := p.Get().(decoder)
		defer func() {
			// What the decoder read from must not stay alive with it.
			_ = d.reset(bytes.NewReader(nil))
			p.Put(d)
		}()
		if err := d.reset(r); err != nil {
			return nil, false, fmt.Errorf("decoding a body: %w", err)
		}
		r = d
	}
	most := mostText(coded, limit)
	buf := bytes.NewBuffer(make([]byte, 0, min(int64(len(coded))*4+bytes.MinRead, most+bytes.MinRead)))
	n, err := buf.ReadFrom(io.LimitReader(r, most+1))
	switch {
	case n > most && most < limit:
		return nil, false, errRatio
	case n > most:
		return buf.Bytes()[:most], false, nil
	case err == nil:
		return buf.Bytes(), whole, nil
	case !whole && n > 0 && errors.Is(err, io.ErrUnexpectedEOF):
		return buf.Bytes(), false, nil
	}
	return nil, false, fmt.Errorf("decoding a body: %w", err)
}
