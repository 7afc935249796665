package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The page's first request named a model that the server beside it doesn't have,
// so the first thing that a newcomer saw was a 404.
func TestTheFirstRequestOfTheDocsIsAnswered(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^bin/vllmsim (.*)$`).FindSubmatch(page)
	request := regexp.MustCompile(`curl http://127\.0\.0\.1:\d+(/\S+) -H 'Content-Type: (\S+)' \\\s+-d '(.*)'`).FindSubmatch(page)
	if command == nil || request == nil {
		t.Fatal("the page has no server or no request")
	}
	args := strings.Fields(string(command[1]))
	for i, a := range args {
		if a == "--listen" {
			args[i+1] = "127.0.0.1:0"
		}
	}
	p := start(t, append(args, "--speed", "1000")...)
	url := p.listening(t, "model=llama3.1-8b preset=llama3.1-8b-h100")
	res, err := http.Post(url+string(request[1]), string(request[2]), strings.NewReader(string(request[3])))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	var v struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal(body, &v); err != nil || res.StatusCode != http.StatusOK || len(v.Choices) != 1 || v.Choices[0].Message.Content == "" {
		t.Errorf("answered with %d %s", res.StatusCode, body)
	}
}

func TestKeysComeFromTheCommandLine(t *testing.T) {
	p := start(t, "--listen", "127.0.0.1:0", "--count", "1", "--api-key", "secret", "--speed", "1000")
	url := p.listening(t, "model=llama3.1-8b preset=llama3.1-8b-h100")
	if status, body := post(t, url, `{"prompt":"x"}`); status != http.StatusUnauthorized {
		t.Errorf("without a key: %d %s", status, body)
	}
}
