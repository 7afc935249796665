//go:build race

package caddyllm

// slowdown is how many times less a long test does where the race detector looks on.
const slowdown = 20
