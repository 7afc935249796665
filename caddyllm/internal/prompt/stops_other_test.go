//go:build !amd64 || purego

package prompt

// portably runs f, since no processor has another way here.
func portably(f func()) { f() }
