package vllmapi

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Dimensions of a made-up embedding.
const (
	embeddingSize    = 1024 // by default; as of many models of half a billion parameters
	embeddingSizeMax = 8192
)

// embeddings answers /v1/embeddings: the engine computes each prompt, and the
// vector, of length 1, follows from its tokens. An engine for text does the
// same work for a prompt and its first token; it counts one here.
func (s *Server) embeddings(x *exchange) {
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	f := s.body(x)
	if f == nil {
		return
	}
	g := newGeneration(f, x.r.Header)
	g.api, g.maxTokens, g.choice = textAPI, 1, toolChoice{}
	if f.has("messages") {
		c := readConversation(f, false)
		g.refuseLate(c.late)
		g.prompts = [][]token{c.tokens()}
	} else if !f.has("input") {
		f.missing("input")
	} else {
		g.prompts, g.tokenized = readTexts(f, "input", f.boolean("add_special_tokens", true))
	}
	g.readTruncation(f, s.c.MaxModelLen)
	format := readChoice(f, "encoding_format", "float", "float", "base64", "bytes", "bytes_only")
	size := f.count("dimensions", embeddingSize)
	if size < 1 || size > embeddingSizeMax {
		g.refuseLate(refuseParam("dimensions", "dimensions must be 1 to %d, got %d.", embeddingSizeMax, size))
	}
	if err := f.problem(nil); err != nil {
		err.write(x)
		return
	}
	j, err := s.prepare(g)
	if err != nil {
		err.write(x)
		return
	}
	j.x = x
	x.entry.Model, x.entry.PromptTokens = g.model, j.promptTokens
	if !j.compute() {
		return
	}
	j.created = time.Now().Unix()
	j.name()
	writeBody(x, http.StatusOK, j.appendEmbeddings(nil, size, format))
}

// compute runs all sequences to their end; false if the client left.
func (j *job) compute() bool {
	outputs, err := j.s.submit(j)
	if err != nil {
		err.write(j.x)
		return false
	}
	defer outputs.close()
	for j.unfinished > 0 {
		if q, _, _ := j.receive(j.x.r.Context(), outputs); q == nil {
			return false
		}
	}
	j.x.entry.CachedTokens = j.cached()
	return true
}

func (j *job) appendEmbeddings(b []byte, size int, format string) []byte {
	b = appendString(append(b, `{"id":`...), "embd-"+j.id[len(j.g.api.prefix):])
	b = strconv.AppendInt(append(b, `,"object":"list","created":`...), j.created, 10)
	b = appendString(append(b, `,"model":`...), j.g.model)
	b = append(b, `,"data":[`...)
	for i, q := range j.sequences {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		b = append(b, `,"object":"embedding","embedding":`...)
		v := embed(q.seed, size)
		if format == "float" {
			b = appendVector(b, v)
		} else {
			b = append(base64.StdEncoding.AppendEncode(append(b, '"'), vectorBytes(v)), '"')
		}
		b = append(b, '}')
	}
	b = append(b, `],"usage":`...)
	b = appendUsage(b, usage{prompt: j.promptTokens, cached: -1, thought: notTold}, true, false)
	return append(b, '}')
}

// embed makes a vector of length 1 from a seed.
func embed(seed uint64, size int) []float32 {
	v := make([]float32, size)
	sum := 0.0
	for i := range v {
		c := float64(int64(mix(seed+uint64(i))))/math.MaxInt64 + 1e-9
		v[i] = float32(c)
		sum += c * c
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

func appendVector(b []byte, v []float32) []byte {
	b = append(b, '[')
	for i, c := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(c), 'g', -1, 32)
	}
	return append(b, ']')
}

func vectorBytes(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, c := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(c))
	}
	return b
}
