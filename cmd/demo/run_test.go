package main

import (
	"os"
	"testing"
)

// A first-time user is told where to look, by the Caddyfile that is there.
func TestStatusLine(t *testing.T) {
	example, err := os.ReadFile("../../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, caddyfile, want string }{
		{"the example", string(example), "What the policy knows and decides: http://127.0.0.1:8080/llm/\n"},
		{"another path", ":80 {\n\thandle_path /a/b/* {\n\t\tllm_status chat\n\t}\n}", "What the policy knows and decides: http://127.0.0.1:80/a/b/\n"},
		{"none", ":80 {\n\thandle_path /llm/* {\n\t\trespond ok\n\t}\n}", ""},
	} {
		if got := statusLine(siteURL(c.caddyfile), c.caddyfile); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
