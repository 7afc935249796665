package caddyllm

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// shownKey is the process's own, and leaves it nowhere.
var shownKey = func() (key [32]byte) {
	_, _ = rand.Read(key[:]) // never fails
	return key
}()

// keyed is eight bytes that tell v from other values and say nothing of it.
func keyed(v []byte) string {
	mac := hmac.New(sha256.New, shownKey[:])
	mac.Write(v)
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// shown is what people see in place of a prompt's hash. The hash itself can be
// made from a guessed prompt, so who saw it could tell whether the guess is
// right. Equal hashes look equal until Caddy ends.
func shown(hash uint64) string {
	return keyed(binary.LittleEndian.AppendUint64(nil, hash))
}
