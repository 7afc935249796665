package prompt

import (
	"bytes"
	"strings"
)

// Stores of objects sign an address anew each time it is given out: a chat's
// picture comes by another one with every turn, and is the same for the engine,
// which tells pictures apart by what they show.

// signatures are parameters that only a signed address has.
var signatures = []string{"x-amz-signature", "x-goog-signature", "x-oss-signature", "x-cos-signature", "q-signature", "signature", "sig"}

// Other parameters that go with a signature: by the start of their names, and
// by the whole. The short ones are Azure's.
var (
	signedWith = []string{"x-amz-", "x-goog-", "x-oss-", "x-cos-", "q-"}
	signedBy   = []string{"expires", "policy", "key-pair-id", "awsaccesskeyid", "googleaccessid", "ossaccesskeyid", "security-token",
		"se", "st", "sp", "sv", "sr", "sip", "spr", "ske", "skt", "sks", "skv", "skoid", "sktid"}
)

// unsigned feeds a signed address without its signature, and reports false for
// all else.
func (s *Scanner) unsigned(v span) bool {
	address := s.headOf(v)
	if !bytes.HasPrefix(address, []byte("http")) || len(s.inside(v)) > mediaHead {
		return false
	}
	path, query, ok := bytes.Cut(address, []byte{'?'})
	if !ok || !signed(query) {
		return false
	}
	s.mark(lString)
	s.emit(path)
	for parameter := range bytes.SplitSeq(query, []byte{'&'}) {
		if !ofSignature(parameter) {
			s.emit([]byte{'&'})
			s.emit(parameter)
		}
	}
	return true
}

func signed(query []byte) bool {
	for parameter := range bytes.SplitSeq(query, []byte{'&'}) {
		if among(parameter, signatures) {
			return true
		}
	}
	return false
}

func ofSignature(parameter []byte) bool {
	if among(parameter, signatures) || among(parameter, signedBy) {
		return true
	}
	for _, start := range signedWith {
		if len(parameter) > len(start) && strings.EqualFold(string(parameter[:len(start)]), start) {
			return true
		}
	}
	return false
}

func among(parameter []byte, names []string) bool {
	name, _, _ := bytes.Cut(parameter, []byte{'='})
	for _, n := range names {
		if len(name) == len(n) && strings.EqualFold(string(name), n) {
			return true
		}
	}
	return false
}
