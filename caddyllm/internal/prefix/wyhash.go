package prefix

import (
	"encoding/binary"
	"math/bits"
)

// The secret that wyhash has unless it is given another. Where it is used word by
// word it comes from variables, which stay in registers: Go would load constants
// as long as these anew each time.
const (
	secret0 = 0x2d358dccaa6c78a5
	secret1 = 0x8bb84b93962eacc9
	secret2 = 0x4b33a62ed433d4a3
	secret3 = 0x4d5a2da51de1aa47
)

var secrets = [3]uint64{secret1, secret2, secret3}

// wyhash is the hash of that name (Wang Yi, final version 4) with seed 0, of at
// least 48 bytes. It takes one multiplication for 16 bytes, where XXH64 takes
// four.
func wyhash(p []byte) uint64 {
	k1, k2, k3 := secrets[0], secrets[1], secrets[2]
	a := fold(secret0, secret1)
	b, c := a, a
	i := 0
	for ; i+96 <= len(p); i += 96 { // two steps at once, which saves a tenth
		q := (*[96]byte)(p[i : i+96])
		a = fold(word(q[0:8])^k1, word(q[8:16])^a)
		b = fold(word(q[16:24])^k2, word(q[24:32])^b)
		c = fold(word(q[32:40])^k3, word(q[40:48])^c)
		a = fold(word(q[48:56])^k1, word(q[56:64])^a)
		b = fold(word(q[64:72])^k2, word(q[72:80])^b)
		c = fold(word(q[80:88])^k3, word(q[88:96])^c)
	}
	if i+48 <= len(p) {
		q := (*[48]byte)(p[i : i+48])
		a = fold(word(q[0:8])^k1, word(q[8:16])^a)
		b = fold(word(q[16:24])^k2, word(q[24:32])^b)
		c = fold(word(q[32:40])^k3, word(q[40:48])^c)
		i += 48
	}
	a ^= b ^ c
	for ; i+16 < len(p); i += 16 {
		a = fold(word(p[i:i+8])^k1, word(p[i+8:i+16])^a)
	}
	end := p[len(p)-16:]
	high, low := bits.Mul64(word(end[0:8])^k1, word(end[8:16])^a)
	return fold(low^secret0^uint64(len(p)), high^k1)
}

func word(p []byte) uint64 { return binary.LittleEndian.Uint64(p) }

// fold is all of a product in one word.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
