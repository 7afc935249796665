package docs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddyllm/caddy-llm-prefix/caddyllm"
)

// TestMain keeps what Caddy stores out of the user's folders.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "docs")
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{
		"HOME": dir, "XDG_DATA_HOME": dir, "XDG_CONFIG_HOME": dir,
		// What the pages' Caddyfiles take from the environment.
		"CLIENT_KEY": "k1", "ENGINE_KEY": "k2", "METRICS_KEY": "k3",
		"STATUS_PASSWORD_HASH": "$2a$04$" + strings.Repeat("x", 53),
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// adapt makes a Caddyfile's JSON. A warning is an error, but for what caddy fmt
// would change.
func adapt(text string) ([]byte, error) {
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		if !strings.Contains(w.Message, "not formatted") {
			return nil, fmt.Errorf("warning of the adapter: %s", w.Message)
		}
	}
	return config, nil
}

// validate loads a Caddyfile's modules, as caddy validate does.
func validate(text string) error {
	adapted, err := adapt(text)
	if err != nil {
		return err
	}
	var config caddy.Config
	if err := caddy.StrictUnmarshalJSON(adapted, &config); err != nil {
		return err
	}
	return caddy.Validate(&config)
}

// whole makes a Caddyfile of what a page shows of one.
func whole(text string) string {
	switch first, _, _ := strings.Cut(strings.TrimSpace(text), " "); first {
	case "lb_policy", "transport":
		return ":8080 {\nreverse_proxy gpu1:8000 gpu2:8000 {\n" + text + "\n}\n}\n"
	case "reverse_proxy", "handle", "handle_path", "log", "log_append", "route", "metrics":
		return ":8080 {\n" + text + "\n}\n"
	}
	return text
}

func TestCaddyfilesAreValid(t *testing.T) {
	etc := certificates(t)
	check := func(name, text string) {
		if err := validate(strings.ReplaceAll(whole(text), "/etc/caddy/", etc+"/")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	check("Caddyfile.example", source(t, "Caddyfile.example"))
	blocks := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language == "caddyfile" {
				blocks++
				check(fmt.Sprintf("%s:%d", p.path, b.line), b.text)
			}
		}
	}
	if blocks == 0 {
		t.Error("found no Caddyfile")
	}
}

// certificates is a folder with what the pages' Caddyfiles find in /etc/caddy.
func certificates(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "engines"}, DNSNames: []string{"gpu1"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*pem.Block{
		"engines-ca.pem": {Type: "CERTIFICATE", Bytes: certificate},
		"gateway.pem":    {Type: "CERTIFICATE", Bytes: certificate},
		"gateway.key":    {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
