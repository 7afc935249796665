package kvevents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// Bounds of Config.
const (
	// BufferMax bounds Config.BufferSteps and Config.MaxQueueSize.
	BufferMax = 1 << 20

	topicMax = 1 << 10 // bytes
)

// Config is vLLM's --kv-events-config, with its names and defaults.
type Config struct {
	// Enable publishes; without it the rest means nothing.
	Enable bool `json:"enable_kv_cache_events"`

	// Publisher is "zmq", or "null" for none; default zmq if Enable.
	Publisher string `json:"publisher"`

	// Endpoint of the PUB socket. It is bound if it holds "*" or "::" or begins
	// with ipc:// or inproc://, and connected to otherwise. Default tcp://*:5557.
	Endpoint string `json:"endpoint"`

	// ReplayEndpoint of the ROUTER socket, always bound; none if empty.
	ReplayEndpoint string `json:"replay_endpoint"`

	// BufferSteps is how many batches a replay can go back; default 10000.
	BufferSteps int `json:"buffer_steps"`

	// HWM bounds the batches that wait for subscribers that are slow; later ones
	// are dropped. Default 100000.
	HWM int `json:"hwm"`

	// MaxQueueSize bounds the batches that wait to be encoded; default 100000.
	// vLLM's scheduler stands still when they are so many; here the batch is
	// dropped, and its sequence number is missing.
	MaxQueueSize int `json:"max_queue_size"`

	// Topic is the first frame of each message; default empty.
	Topic string `json:"topic"`
}

// ParseConfig reads the JSON of vLLM's option. An unknown word is an error.
func ParseConfig(text string) (Config, error) {
	c := Config{Endpoint: "tcp://*:5557", BufferSteps: 10_000, HWM: 100_000, MaxQueueSize: 100_000}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("reading KV events config: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return c, errors.New("reading KV events config: something follows the object")
	}
	if c.Publisher == "" {
		c.Publisher = "null"
		if c.Enable {
			c.Publisher = "zmq"
		}
	}
	if err := c.validate(); err != nil {
		return c, fmt.Errorf("reading KV events config: %w", err)
	}
	return c, nil
}

// Publishes tells whether there is anything to do.
func (c Config) Publishes() bool { return c.Enable && c.Publisher == "zmq" }

func (c Config) validate() error {
	if c.Publisher != "zmq" && c.Publisher != "null" {
		return fmt.Errorf("publisher is %q, want zmq or null", c.Publisher)
	}
	if len(c.Topic) > topicMax {
		return fmt.Errorf("topic has %d bytes, want at most %d", len(c.Topic), topicMax)
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"buffer_steps", c.BufferSteps}, {"hwm", c.HWM}, {"max_queue_size", c.MaxQueueSize}} {
		if n.value < 1 || n.value > BufferMax {
			return fmt.Errorf("%s is %d, want 1 to %d", n.name, n.value, BufferMax)
		}
	}
	for _, endpoint := range []string{c.Endpoint, c.ReplayEndpoint} {
		if _, err := offset(endpoint, 0); err != nil {
			return err
		}
	}
	return nil
}

// binds tells whether the PUB socket listens at the endpoint.
func binds(endpoint string) bool {
	return strings.Contains(endpoint, "*") || strings.Contains(endpoint, "::") ||
		strings.HasPrefix(endpoint, "ipc://") || strings.HasPrefix(endpoint, "inproc://")
}

// offset is the endpoint of an engine: vLLM adds the data-parallel rank to a
// port, or to the name of an inproc one. It knows nothing of the kind for ipc.
func offset(endpoint string, by int) (string, error) {
	scheme, rest, ok := strings.Cut(endpoint, "://")
	switch {
	case endpoint == "":
		return "", nil
	case !ok || rest == "":
		return "", fmt.Errorf("endpoint %q: want tcp://, ipc:// or inproc:// and an address", endpoint)
	case scheme == "inproc" && by == 0, scheme == "ipc" && by == 0:
		return endpoint, nil
	case scheme == "inproc":
		return fmt.Sprintf("%s_dp%d", endpoint, by), nil
	case scheme == "ipc":
		return "", fmt.Errorf("endpoint %q: several engines want inproc or tcp", endpoint)
	case scheme != "tcp":
		return "", fmt.Errorf("endpoint %q: unknown transport %q", endpoint, scheme)
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		return "", fmt.Errorf("endpoint %q: %w", endpoint, err)
	}
	if port == "*" { // any that is free
		return endpoint, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n+uint64(by) > 65535 {
		return "", fmt.Errorf("endpoint %q: port and rank %d: want at most 65535", endpoint, by)
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.FormatUint(n+uint64(by), 10)), nil
}
