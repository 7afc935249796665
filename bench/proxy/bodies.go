package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// bodies are chats of 32 KB, each of its own text.
var bodies = func() [][]byte {
	all := make([][]byte, 64)
	for i := range all {
		all[i] = chatOf(uint64(i), 32<<10)
	}
	return all
}()

func chatOf(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var messages []message
	for size := 0; size < n; {
		var text strings.Builder
		for text.Len() < min(1500, n-size) {
			if r.IntN(8) == 0 {
				fmt.Fprintf(&text, "if x[%d] == \"k%d\" {\n\treturn nil\n}\n", r.IntN(9), r.IntN(99))
				continue
			}
			fmt.Fprintf(&text, "word%d of plain prose, ", r.IntN(10_000))
		}
		size += text.Len() + 40
		messages = append(messages, message{[]string{"user", "assistant"}[len(messages)%2], text.String()})
	}
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages, "temperature": 0.2})
	if err != nil {
		panic(err)
	}
	return body
}
