package main

import (
	"strings"
	"testing"
)

func TestTheSimulatorsLineGivesItsAddress(t *testing.T) {
	for line, want := range map[string]string{
		"vllmsim: listening on http://127.0.0.1:41233 model=m preset=p": "127.0.0.1:41233",
		"vllmsim: listening on http://[::1]:9101":                       "[::1]:9101",
		"vllmsim: listening on":                                         "",
		"vllmsim: listening on  ":                                       "",
		"vllmsim: listening on http://%zz":                              "",
		"listens":                                                       "",
		"":                                                              "",
	} {
		if got := listening(line); got != want {
			t.Errorf("listening(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestFinishedRequestsAreSummedOverReasons(t *testing.T) {
	for page, want := range map[string]int64{
		"# TYPE vllm:request_success_total counter\n" +
			"vllm:request_success_total{engine=\"0\",finished_reason=\"stop\",model_name=\"a b\"} 4\n" +
			"vllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"a b\"} 1.2e1\n" +
			"vllm:request_success_total_other 100\n": 16,
		"vllm:num_requests_running 3\n": 0,
		"":                              0,
	} {
		if got, err := finished(strings.NewReader(page)); err != nil || got != want {
			t.Errorf("finished(%q) = %d, %v, want %d", page, got, err, want)
		}
	}
	if _, err := finished(strings.NewReader("vllm:request_success_total{} many\n")); err == nil {
		t.Error("finished(a word for a number) = nil, want an error")
	}
}

func TestTheSiteIsFoundInACaddyfile(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\tadmin localhost:2019\n}\n\n:8080 {\n}\n": "http://127.0.0.1:8080",
		"http://localhost:9000 {\n}":                   "http://localhost:9000",
		"# :1 {\nexample.com {\n}":                     "http://127.0.0.1:8080",
	} {
		if got := siteURL(text); got != want {
			t.Errorf("siteURL(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzFinished(f *testing.F) {
	f.Add("vllm:request_success_total{a=\"b\"} 1\n")
	f.Add("vllm:request_success_total ")
	f.Add("vllm:request_success_total{} NaN\n")
	f.Fuzz(func(t *testing.T, page string) {
		if n, err := finished(strings.NewReader(page)); err == nil && n < 0 {
			t.Errorf("finished(%q) = %d", page, n)
		}
	})
}
