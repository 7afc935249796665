// Package fidelity holds the simulator against recordings of vLLM itself: what
// differs is a failure unless docs/fidelity.md lists it, and what the page lists
// must differ.
package fidelity
