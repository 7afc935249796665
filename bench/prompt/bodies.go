package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

type body struct {
	name string
	text []byte
}

// chatOf is a chat body of about n bytes: prose and code with the escapes that
// both have.
func chatOf(n int) []byte {
	r := rand.New(rand.NewPCG(1, 1))
	var b strings.Builder
	b.WriteString(`{"model":"meta-llama/Llama-3.1-8B-Instruct","temperature":0.2,"stream":true,"messages":[{"role":"system","content":"You help."}`)
	for i := 0; b.Len() < n; i++ {
		var text strings.Builder
		for text.Len() < min(1500, n-b.Len()) {
			switch r.IntN(12) {
			case 0:
				text.WriteString("\n")
			case 1:
				fmt.Fprintf(&text, "if x[%d] == \"k%d\" {\n\treturn nil\n}\n", r.IntN(9), r.IntN(99))
			case 2:
				text.WriteString("café, naïve. ")
			default:
				text.WriteString("some words of plain prose, and more of it. ")
			}
		}
		fmt.Fprintf(&b, `,{"role":%q,"content":%s}`, []string{"user", "assistant"}[i%2], quoted(text.String()))
	}
	b.WriteString("]}")
	return []byte(b.String())
}

// imageOf is a chat body with an image of n bytes of base64.
func imageOf(n int) []byte {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	r := rand.New(rand.NewPCG(2, 2))
	data := make([]byte, n)
	for i := range data {
		data[i] = digits[r.IntN(len(digits))]
	}
	return fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`, data)
}

// quoted is a string as most clients write it: HTML is nothing special.
func quoted(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// recorded are real conversations of about 32 KB, one of an agent that calls
// tools and one of an agent that writes code.
func recorded(folder string) ([]body, error) {
	tools, err := ofTaubench(filepath.Join(folder, "taubench_gpt4o_airline.json.gz"))
	if err != nil {
		return nil, err
	}
	code, err := ofMiniswe(filepath.Join(folder, "lmcache_miniswe.jsonl.gz"))
	if err != nil {
		return nil, err
	}
	return []body{tools, code}, nil
}

func unzip(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

const wanted = 32 << 10

func ofTaubench(file string) (body, error) {
	data, err := unzip(file)
	if err != nil {
		return body{}, err
	}
	var runs []struct {
		Traj json.RawMessage `json:"traj"`
	}
	if err := json.Unmarshal(data, &runs); err != nil {
		return body{}, err
	}
	best := json.RawMessage(nil)
	for _, r := range runs {
		if len(r.Traj) <= wanted && len(r.Traj) > len(best) {
			best = r.Traj
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, best); err != nil {
		return body{}, err
	}
	return body{"recorded chat with tools", fmt.Appendf(nil, `{"model":"gpt-4o","messages":%s,"temperature":0}`, compact.Bytes())}, nil
}

func ofMiniswe(file string) (body, error) {
	data, err := unzip(file)
	if err != nil {
		return body{}, err
	}
	var b bytes.Buffer
	b.WriteString(`{"model":"m","messages":[{"role":"system","content":"You write code."}`)
	for line := range bytes.Lines(data) {
		var turn struct{ Input, Output string }
		if err := json.Unmarshal(line, &turn); err != nil {
			return body{}, err
		}
		for role, text := range map[string]string{"user": turn.Input} {
			if b.Len()+len(text) > wanted {
				text = text[:max(0, min(len(text), wanted-b.Len()))]
			}
			fmt.Fprintf(&b, `,{"role":%q,"content":%s},{"role":"assistant","content":%s}`, role, quoted(strings.ToValidUTF8(text, "")), quoted("done"))
		}
		if b.Len() >= wanted {
			b.WriteString("]}")
			return body{"recorded chat about code", b.Bytes()}, nil
		}
	}
	return body{}, errors.New("the recording is too short")
}
