//go:build !amd64 || purego

package prompt

func look(text []byte, at int, carry uint64) stops { return lookPlanes(text, at, carry) }
