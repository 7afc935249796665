// Package e2e holds no code but tests: Caddy with the policy and simulated
// vLLM engines in one process. Engines listen on free loopback ports, Caddy on
// a socket file, since it can't tell which free port it got.
package e2e
