//go:build !race

package caddyllm

const slowdown = 1
