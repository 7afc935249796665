//go:build !purego

package prompt

import "golang.org/x/sys/cpu"

// vectors says that the processor has what lookVectors is made of, as those of
// servers have since 2013 to 2015.
var vectors = cpu.X86.HasAVX2 && cpu.X86.HasBMI1

func look(text []byte, at int, carry uint64) stops {
	if vectors {
		return lookVectors(text, at, carry)
	}
	return lookPlanes(text, at, carry)
}

// lookVectors is look with 32 bytes to an instruction, in stops_amd64.s.
//
//go:noescape
func lookVectors(text []byte, at int, carry uint64) (stop stops)
