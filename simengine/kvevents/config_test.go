package kvevents

import (
	"strings"
	"testing"
)

func TestConfigsAreVLLMs(t *testing.T) {
	c, err := ParseConfig(`{"enable_kv_cache_events":true,"topic":"kv@pod","replay_endpoint":null}`)
	want := Config{Enable: true, Publisher: "zmq", Endpoint: "tcp://*:5557", BufferSteps: 10_000, HWM: 100_000, MaxQueueSize: 100_000, Topic: "kv@pod"}
	if err != nil || c != want || !c.Publishes() {
		t.Errorf("config is %+v, %v; want %+v", c, err, want)
	}
	if c, err := ParseConfig(`{}`); err != nil || c.Publishes() || c.Publisher != "null" {
		t.Errorf("an empty config is %+v, %v", c, err)
	}
	if c, err := ParseConfig(`{"enable_kv_cache_events":true,"publisher":"null"}`); err != nil || c.Publishes() {
		t.Errorf("a config without publisher is %+v, %v", c, err)
	}
}

func TestConfigsThatMakeNoSense(t *testing.T) {
	for text, want := range map[string]string{
		``:                                    "EOF",
		`[]`:                                  "cannot unmarshal",
		`{} {}`:                               "something follows",
		`{"endpiont":"x"}`:                    `unknown field "endpiont"`,
		`{"publisher":"kafka"}`:               `publisher is "kafka", want zmq or null`,
		`{"buffer_steps":0}`:                  "buffer_steps is 0, want 1 to 1048576",
		`{"hwm":-1}`:                          "hwm is -1",
		`{"max_queue_size":9e99}`:             "cannot unmarshal",
		`{"endpoint":"*:5557"}`:               "want tcp://, ipc:// or inproc://",
		`{"endpoint":"udp://*:5557"}`:         `unknown transport "udp"`,
		`{"endpoint":"tcp://*"}`:              "missing port",
		`{"endpoint":"tcp://*:x"}`:            "want at most 65535",
		`{"replay_endpoint":"tcp://*:99999"}`: "want at most 65535",
		`{"topic":"` + strings.Repeat("x", topicMax+1) + `"}`: "topic has 1025 bytes",
	} {
		if c, err := ParseConfig(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseConfig(%.60s) = %+v, %v; want %s", text, c, err, want)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add(`{"enable_kv_cache_events":true,"endpoint":"tcp://*:5557","replay_endpoint":"ipc:///x","buffer_steps":10,"topic":"t"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseConfig(text); err == nil && c.validate() != nil {
			t.Errorf("%+v was taken: %v", c, c.validate())
		}
	})
}

func TestEachEngineHasItsEndpoint(t *testing.T) {
	for _, c := range []struct {
		endpoint string
		by       int
		want     string // "" is an error
		binds    bool
	}{
		{"tcp://*:5557", 0, "tcp://*:5557", true}, {"tcp://*:5557", 3, "tcp://*:5560", true}, {"tcp://router:5557", 1, "tcp://router:5558", false},
		{"tcp://[::]:5557", 1, "tcp://[::]:5558", true}, {"inproc://cache", 0, "inproc://cache", true}, {"inproc://cache", 2, "inproc://cache_dp2", true},
		{"ipc:///run/x", 0, "ipc:///run/x", true}, {"ipc:///run/x", 1, "", true}, {"tcp://*:65535", 1, "", true}, {"tcp://127.0.0.1:*", 5, "tcp://127.0.0.1:*", true},
	} {
		got, err := offset(c.endpoint, c.by)
		if got != c.want || (err != nil) != (c.want == "") || binds(c.endpoint) != c.binds {
			t.Errorf("offset(%s, %d) = %q, %v, bound: %v", c.endpoint, c.by, got, err, binds(c.endpoint))
		}
	}
}
