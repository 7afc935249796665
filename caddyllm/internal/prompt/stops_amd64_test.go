//go:build !purego

package prompt

// portably runs f as a processor without vectors would.
func portably(f func()) {
	defer func(before bool) { vectors = before }(vectors)
	vectors = false
	f()
}
