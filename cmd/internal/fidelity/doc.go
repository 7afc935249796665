// Package fidelity holds the simulator against recordings of vLLM itself: the
// cached tokens of each request of a sequence, and the gauges as clients leave.
// What differs in form is held in simengine/vllmapi and vllmmetrics;
// docs/fidelity.md tells what does and why.
package fidelity
